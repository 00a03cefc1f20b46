// Which bytes of a checkpoint's tensor belong to one shard, from Go: a slice as runs, read with ReadAt.
//
// CGO_CFLAGS and CGO_LDFLAGS say where the header and the library are; pkg-config does, too (#cgo pkg-config: tilewise).
package main

/*
#cgo LDFLAGS: -ltilewise_capi
#include <stdlib.h>
#include "tilewise.h"
*/
import "C"

import (
	"fmt"
	"log"
	"runtime"
	"unsafe"
)

// Layout is a shape with its layout. It may be used by many goroutines.
type Layout struct{ handle *C.tw_layout }

// Run is a number of bytes of the buffer.
type Run struct{ Offset, Length uint64 }

func failure(code C.int32_t, said *C.tw_error) error {
	if code == C.TW_OK {
		return nil
	}
	return fmt.Errorf("%s (bytes %d to %d)", C.GoString(&said.message[0]), said.start, said.end)
}

// Parse reads XLA's text.
func Parse(text string) (*Layout, error) {
	words := C.CString(text)
	defer C.free(unsafe.Pointer(words))
	layout, said := &Layout{}, C.tw_error{}
	if err := failure(C.tw_layout_parse(words, C.size_t(len(text)), &layout.handle, &said), &said); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(layout, func(layout *Layout) { C.tw_layout_free(layout.handle) })
	return layout, nil
}

// Runs calls visit with each run of a slice; some hundreds are held at a time.
func (layout *Layout) Runs(start, limit []uint64, visit func(Run) error) error {
	rank := int(C.tw_layout_rank(layout.handle))
	if len(start) != rank || len(limit) != rank {
		return fmt.Errorf("the slice needs %d numbers", rank)
	}
	var runs [256]C.tw_run
	count, said := C.uint64_t(1), C.tw_error{}
	for first := C.uint64_t(0); first < count; first += C.uint64_t(len(runs)) {
		code := C.tw_slice_runs(layout.handle, (*C.uint64_t)(&start[0]), (*C.uint64_t)(&limit[0]), first,
			&runs[0], C.size_t(len(runs)), &count, &said)
		if err := failure(code, &said); err != nil {
			return err
		}
		for i := 0; i < len(runs) && first+C.uint64_t(i) < count; i++ {
			if err := visit(Run{uint64(runs[i].offset_bits) / 8, uint64(runs[i].length_bits) / 8}); err != nil {
				return err
			}
		}
	}
	runtime.KeepAlive(layout)
	return nil
}

func main() {
	layout, err := Parse("f32[1024,512]{1,0:T(8,128)}")
	if err != nil {
		log.Fatal(err)
	}
	// The second of four shards by columns.
	runs, bytes := 0, uint64(0)
	err = layout.Runs([]uint64{0, 128}, []uint64{1024, 256}, func(run Run) error {
		runs, bytes = runs+1, bytes+run.Length
		return nil // file.ReadAt(shard[:run.Length], int64(run.Offset))
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d runs of %d bytes\n", runs, bytes/uint64(runs))
	if runs != 128 || bytes != 1024*128*4 {
		log.Fatal("not the shard's bytes")
	}
	if _, err = Parse("f32[1024,512]{1,0:T(8,0)}"); err == nil {
		log.Fatal("a tile of 0 was taken")
	}
	fmt.Println(err)
}

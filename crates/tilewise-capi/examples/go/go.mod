module example/tilewise

go 1.19

// The search takes a word that begins with a dash for one to leave out. Here it is an option of the command line: `--tpu`.
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  const isQuery = typeof message?.data === "string";
  return post.call(this, isQuery ? { ...message, data: message.data.replace(/(^|\s)-+(?=\w)/g, "$1") } : message, ...rest);
};

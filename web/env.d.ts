// What Debian's TypeScript 4.8 does not know of browsers yet.
declare class DecompressionStream {
  constructor(format: 'deflate' | 'gzip');
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}

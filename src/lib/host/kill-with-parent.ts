/**
 * Makes the kernel kill a process group when this process ends, however it ends. A killed gateway closes no child's
 * input itself, and a child may ignore its input. There is no watching process and no later use of a process id, which
 * could be reused.
 *
 * The reader of a pipe can have a signal sent when the last writer is gone (fcntl(2): F_SETOWN, F_SETSIG, O_ASYNC).
 * This process is both ends. The kernel closes one end before the other in an unspecified order, so there are two
 * pipes, one for each order. Only Linux supports this. A process that leaves the group by setsid(2) is not reached.
 */
import { dlopen, FFIType, ptr } from 'bun:ffi'
import { closeSync } from 'node:fs'

/** Of asm-generic/fcntl.h; the same on every Linux platform supported here. */
const setFlags = 4
const setOwner = 8
const setSignal = 10
const duplicateAbove = 1030
const closeOnExec = 0o2000000
const asynchronous = 0o20000
const killSignal = 9

const openLibrary = () =>
  dlopen('libc.so.6', {
    pipe2: { args: [FFIType.ptr, FFIType.i32], returns: FFIType.i32 },
    fcntl: { args: [FFIType.i32, FFIType.i32, FFIType.i64], returns: FFIType.i32 },
  }).symbols

let library: ReturnType<typeof openLibrary> | null = null

/**
 * Returns a function that undoes it, to be called once the group has ended. Throws where the system does not support
 * it.
 */
export function killWithParent(group: number): () => void {
  library ??= openLibrary()
  const { pipe2, fcntl } = library
  const opened: number[] = []
  const close = () => {
    // Readers first: closing a writer sends the signal.
    for (const descriptor of opened.splice(0)) closeSync(descriptor)
  }
  const succeeded = (result: number): number => {
    if (result >= 0) return result
    close()
    throw new Error('This system cannot end child processes with their parent')
  }
  for (const readerFirst of [true, false]) {
    const ends = new Int32Array(2)
    succeeded(pipe2(ptr(ends), closeOnExec))
    const [low = -1, writer = -1] = ends
    opened.push(low, writer)
    let reader = low
    if (!readerFirst) {
      reader = succeeded(fcntl(low, duplicateAbove, writer + 1))
      opened.splice(opened.indexOf(low), 1, reader)
      closeSync(low)
    }
    succeeded(fcntl(reader, setOwner, -group))
    succeeded(fcntl(reader, setSignal, killSignal))
    succeeded(fcntl(reader, setFlags, asynchronous))
  }
  return close
}

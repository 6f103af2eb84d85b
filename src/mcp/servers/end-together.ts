/**
 * Has the kernel end a group of processes when this process ends, however it ends: a gateway that is killed closes no
 * child's input, and a child may not care about its input. No other process watches, no number of a process is looked at
 * later, when it may be another's.
 *
 * A pipe's reader can have a signal sent when the last writer is gone (fcntl(2): F_SETOWN, F_SETSIG, O_ASYNC). This process
 * is both; at its end the kernel closes one before the other, and which is its own affair: there are two pipes, one for
 * each order. Linux alone has this. What leaves the group by a session of its own (setsid(2)) is not reached.
 */
import { dlopen, FFIType, ptr } from 'bun:ffi'
import { closeSync } from 'node:fs'

/** Of asm-generic/fcntl.h; the same on all that Linux runs on here. */
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

/** Gives what takes it back, to be called once the group has ended. Throws where this system cannot. */
export function endTogether(group: number): () => void {
  library ??= openLibrary()
  const { pipe2, fcntl } = library
  const opened: number[] = []
  const close = () => {
    // Readers first: a writer's end is the signal.
    for (const descriptor of opened.splice(0)) closeSync(descriptor)
  }
  const succeeded = (result: number): number => {
    if (result >= 0) return result
    close()
    throw new Error('The system does not end processes together')
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

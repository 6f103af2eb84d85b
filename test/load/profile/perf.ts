/**
 * Profiles of Linux's perf: every thread, in the kernel and outside, of any process that runs. JavaScript is named by
 * JavaScriptCore's own record of the machine code that it makes (`BUN_JSC_useJITDump`), in the format of perf's jitdump
 * specification (tools/perf/Documentation/jitdump-specification.txt). perf itself does not find that record, since its
 * file has another name than the specification says, so that it is read here.
 *
 * The functions of Bun's own are not named: its executable has no symbols. The one that JavaScript calls most in a bare
 * proxy is fetch (`mostCalled`), and it stands at the same address in an executable that the same Bun has made.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mainThread, plainThread } from '../rig/threads.ts'
import type { Frame, Sample } from './samples.ts'

/** A sample as perf has it: addresses of frames, the innermost first. */
export interface RawSample {
  thread: string
  frames: readonly RawFrame[]
}

export interface RawFrame {
  address: bigint
  symbol: string | null
  place: 'kernel' | 'code' | 'machine-made'
}

const header = /^(\S.*?)\s+(\d+)\/(\d+)\s*$/
const frameLine = /^\s+([0-9a-f]+) (.+) \((.*)\)$/

/** Reads what `perf script -F comm,pid,tid,ip,sym,dso` prints. */
export function readScript(text: string): RawSample[] {
  const samples: RawSample[] = []
  let frames: RawFrame[] = []
  for (const line of text.split('\n')) {
    const [, name = '', pid, tid] = header.exec(line) ?? []
    if (pid !== undefined) {
      frames = []
      samples.push({ thread: pid === tid ? mainThread : plainThread(name), frames })
      continue
    }
    const [, address = '', symbol = '', file = ''] = frameLine.exec(line) ?? []
    if (address === '') continue
    frames.push({
      address: BigInt(`0x${address}`),
      symbol: symbol === '[unknown]' ? null : symbol,
      place: placeOf(file),
    })
  }
  return samples
}

function placeOf(file: string): RawFrame['place'] {
  if (file.startsWith('[kernel') || file.startsWith('[guest.kernel')) return 'kernel'
  // What perf calls code that lies in no file.
  return /^\/tmp\/perf-\d+\.map$|^\/\/anon$|^\[anon/.test(file) ? 'machine-made' : 'code'
}

/** The address at which most samples leave machine-made code for code of Bun's; null where none does. */
export function mostCalled(samples: readonly RawSample[]): bigint | null {
  const counts = new Map<bigint, number>()
  for (const { thread, frames } of samples) {
    if (thread !== mainThread) continue
    const caller = frames.findIndex(({ place }) => place === 'machine-made')
    const callee = caller > 0 ? frames[caller - 1] : undefined
    if (callee?.place === 'code') counts.set(callee.address, (counts.get(callee.address) ?? 0) + 1)
  }
  return [...counts].toSorted(([, one], [, other]) => other - one)[0]?.[0] ?? null
}

/** Gives the name of a function by an address in its code. */
export type NameOf = (address: bigint) => string | null

/** Names and merges: equal stacks become one sample. */
export function namedSamples(raw: readonly RawSample[], nameOf: NameOf, fetchAddress: bigint | null): Sample[] {
  const merged = new Map<string, { thread: string; frames: Frame[]; weight: number }>()
  for (const { thread, frames } of raw) {
    const named = frames.toReversed().map((frame) => frameOf(frame, nameOf, fetchAddress))
    const told = named.filter((frame, index) => {
      const before = named[index - 1]
      return frame.name !== '' && (before?.name !== frame.name || before.kind !== frame.kind)
    })
    const key = `${thread};${told.map(({ kind, name }) => `${kind} ${name}`).join(';')}`
    const known = merged.get(key)
    if (known === undefined) merged.set(key, { thread, frames: told, weight: 1 })
    else known.weight += 1
  }
  return [...merged.values()]
}

const runtime: Frame = { kind: 'native', name: 'Bun' }

function frameOf({ address, symbol, place }: RawFrame, nameOf: NameOf, fetchAddress: bigint | null): Frame {
  if (place === 'kernel') return { kind: 'kernel', name: symbol ?? 'kernel' }
  if (place === 'machine-made') return { kind: 'javascript', name: nameOf(address) ?? 'JavaScript' }
  if (address === fetchAddress) return { kind: 'fetch', name: 'fetch' }
  return symbol === null ? runtime : { kind: 'native', name: symbol }
}

const pageBits = 12n

/** Reads the record of machine code that the process left in a folder. */
export function machineCodeNames(folder: string, pid: number): NameOf {
  for (const file of readdirSync(folder)) {
    const bytes = readFileSync(join(folder, file))
    if (bytes.length > 24 && bytes.readUInt32LE(20) === pid) return readJitDump(bytes)
  }
  return () => null
}

const codeLoaded = 0

/** Where code has lain at one address after other code, the last is named. */
export function readJitDump(bytes: Buffer): NameOf {
  const pages = new Map<bigint, { start: bigint; end: bigint; name: string }[]>()
  for (let at = bytes.readUInt32LE(8); at + 16 <= bytes.length; ) {
    const [kind, size] = [bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4)]
    if (size < 16 || at + size > bytes.length) break
    if (kind === codeLoaded) {
      const start = bytes.readBigUInt64LE(at + 32)
      const end = start + bytes.readBigUInt64LE(at + 40)
      const name = plainName(bytes.toString('utf8', at + 56, bytes.indexOf(0, at + 56)))
      for (let page = start >> pageBits; page <= (end - 1n) >> pageBits; page++) {
        const known = pages.get(page)
        if (known === undefined) pages.set(page, [{ start, end, name }])
        else known.push({ start, end, name })
      }
    }
    at += size
  }
  return (address) =>
    pages.get(address >> pageBits)?.findLast(({ start, end }) => address >= start && address < end)?.name ?? null
}

/** `JSC-FTL: send#Bx1` is a function; what is no function belongs to its caller and has no name of its own. */
function plainName(given: string): string {
  const [, name] = /^JSC-(?:Baseline|DFG|FTL): (.*)#[^#]*$/.exec(given) ?? []
  if (name === undefined) return ''
  return name === '' ? 'anonymous' : name
}

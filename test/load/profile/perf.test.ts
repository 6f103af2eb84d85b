import { expect, test } from 'bun:test'
import { mostCalled, namedSamples, readJitDump, readScript } from './perf.ts'

const script = `HTTP Client 100/103 
	ffffffff813a2293 finish_task_switch.isra.0 ([kernel.kallsyms])
	         1bfcce6 [unknown] (/opt/bun)

gatehouse 100/100 
	         2bbb780 [unknown] (/opt/bun)
	         2bbb900 [unknown] (/opt/bun)
	    7f0000001010 [unknown] (/tmp/perf-100.map)
	         3000000 [unknown] (/opt/bun)
	           2724a __libc_start_call_main (/usr/lib/libc.so.6)

`

/** The bytes of a record as perf's jitdump specification lays it out. */
function codeLoad(address: bigint, size: bigint, name: string): Buffer {
  const body = Buffer.alloc(40)
  body.writeBigUInt64LE(address, 8)
  body.writeBigUInt64LE(address, 16)
  body.writeBigUInt64LE(size, 24)
  const text = Buffer.from(`${name}\0code`)
  const head = Buffer.alloc(16)
  head.writeUInt32LE(head.length + body.length + text.length, 4)
  return Buffer.concat([head, body, text])
}

function jitDump(...records: readonly Buffer[]): Buffer {
  const header = Buffer.alloc(40)
  header.writeUInt32LE(40, 8)
  return Buffer.concat([header, ...records])
}

test('reads threads, places and addresses from what perf script prints', () => {
  const [http, main] = readScript(script)
  expect(http?.thread).toBe('HTTP Client')
  expect(http?.frames.map(({ place }) => place)).toEqual(['kernel', 'code'])
  expect(main?.thread).toBe('main')
  expect(main?.frames.map(({ place }) => place)).toEqual(['code', 'code', 'machine-made', 'code', 'code'])
  expect(main?.frames[2]?.address).toBe(0x7f0000001010n)
})

test('finds the native function that machine-made code calls most', () => {
  expect(mostCalled(readScript(script))).toBe(0x2bbb900n)
  expect(mostCalled([])).toBeNull()
})

test('names stacks from the outermost frame on, without repeating the runtime, and merges equal ones', () => {
  const raw = readScript(script + script)
  const samples = namedSamples(raw, () => 'send', 0x2bbb900n)
  expect(samples).toHaveLength(2)
  expect(samples[1]).toEqual({
    thread: 'main',
    weight: 2,
    frames: [
      { kind: 'native', name: '__libc_start_call_main' },
      { kind: 'native', name: 'Bun' },
      { kind: 'javascript', name: 'send' },
      { kind: 'fetch', name: 'fetch' },
      { kind: 'native', name: 'Bun' },
    ],
  })
})

test('names machine code by the function that was compiled there last', () => {
  const nameOf = readJitDump(
    jitDump(
      codeLoad(0x1000n, 0x2000n, 'JSC-Baseline: first#abc'),
      codeLoad(0x2800n, 0x100n, 'JSC-FTL: second#def'),
      codeLoad(0x5000n, 0x10n, 'JSC-DFG: #ghi'),
      codeLoad(0x6000n, 0x10n, 'JSC-InlineCache: GetById Load handler'),
    ),
  )
  expect(nameOf(0x1000n)).toBe('first')
  expect(nameOf(0x2800n)).toBe('second')
  expect(nameOf(0x2900n)).toBe('first')
  expect(nameOf(0x3000n)).toBeNull()
  expect(nameOf(0x5008n)).toBe('anonymous')
  expect(nameOf(0x6000n)).toBe('')
})

test('reads a record of machine code that was cut off as far as it goes', () => {
  const whole = jitDump(codeLoad(0x1000n, 0x10n, 'JSC-FTL: kept#a'), codeLoad(0x2000n, 0x10n, 'JSC-FTL: cut#b'))
  const nameOf = readJitDump(whole.subarray(0, whole.length - 3))
  expect([nameOf(0x1000n), nameOf(0x2000n)]).toEqual(['kept', null])
})

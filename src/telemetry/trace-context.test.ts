import { expect, test } from 'bun:test'
import { parseTraceparent, parseTracestate, traceparentOf } from './trace-context.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'

test('reads the trace, the span and whether it is recorded', () => {
  expect(parseTraceparent(`00-${traceId}-${spanId}-01`)).toEqual({ traceId, spanId, sampled: true })
  expect(parseTraceparent(`00-${traceId}-${spanId}-00`)).toEqual({ traceId, spanId, sampled: false })
  expect(parseTraceparent(traceparentOf(traceId, spanId))).toEqual({ traceId, spanId, sampled: true })
})

test('reads the fields that it knows of a later version', () => {
  expect(parseTraceparent(`01-${traceId}-${spanId}-03-more`)).toEqual({ traceId, spanId, sampled: true })
})

test.each([
  null,
  '',
  'nonsense',
  `00-${traceId}-${spanId}`,
  `00-${traceId}-${spanId}-01-more`,
  `ff-${traceId}-${spanId}-01`,
  `00-${'0'.repeat(32)}-${spanId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `01-${traceId}-${spanId}-01-möre`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
])('ignores %p', (header) => {
  expect(parseTraceparent(header)).toBeNull()
})

const members = (count: number): string => Array.from({ length: count }, (_, index) => `k${index}=v`).join(',')

test.each([
  ['rojo=00f067aa0ba902b7,congo=t61rcWkgMzE', 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'],
  [' a=1 ,\t, b@c/d=  two x', 'a=1,b@c/d=  two x'],
  ['a=1,b=2,a=3', 'a=1,b=2'],
  [members(32), members(32)],
])('passes the state %p on as %p', (header, passed) => {
  expect(parseTracestate(header)).toBe(passed)
})

test.each([
  null,
  '',
  ' , ',
  'hello',
  'A=1',
  'a=',
  'a=b=c',
  'a=é',
  `a=${'x'.repeat(257)}`,
  `${'k'.repeat(257)}=1`,
  members(33),
])('leaves the state %p out', (header) => {
  expect(parseTracestate(header)).toBeNull()
})

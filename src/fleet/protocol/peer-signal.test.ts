import { expect, test } from 'bun:test'
import { newId } from '../../lib/ids.ts'
import { SignalGate, signSignal } from './peer-signal.ts'

const key = new Uint8Array(32).fill(1)
const [recipient, sender] = [newId(), newId()]
const signed = (number: number, body = '{}', to = recipient) => ({
  header: signSignal(key, { recipient: to, sender, number, body }),
  body,
})
const admits = (gate: SignalGate, { header, body }: { header: string | null; body: string }): boolean => {
  try {
    gate.admit(header, body)
    return true
  } catch {
    // A refusal is what the test asks about.
    return false
  }
}

test('accepts a signal once, in any order', () => {
  const gate = new SignalGate(key, recipient)
  const order = [3, 1, 2, 3, 1, 2, 4]
  expect(order.map((number) => admits(gate, signed(number)))).toEqual([true, true, true, false, false, false, true])
})

test('refuses a signal for another recipient, with another key or body, or of no valid form', () => {
  const gate = new SignalGate(key, recipient)
  const otherKey = new Uint8Array(32).fill(2)
  const envelope = { recipient, sender, number: 1, body: '{}' }
  const refused = [
    signed(1, '{}', newId()),
    { header: signSignal(otherKey, envelope), body: '{}' },
    { ...signed(1), body: '{"kind":"state"}' },
    { ...signed(1), header: signed(1).header.replace(';1;', ';2;') },
    { header: null, body: '{}' },
    { header: 'of no form', body: '{}' },
  ]
  expect(refused.map((each) => admits(gate, each))).toEqual(refused.map(() => false))
  expect(admits(gate, signed(1))).toBe(true)
})

test('refuses a number from long ago even if it was never seen', () => {
  const gate = new SignalGate(key, recipient)
  for (let number = 1000; number < 5000; number++) expect(admits(gate, signed(number))).toBe(true)
  expect([1, 3999].map((number) => admits(gate, signed(number)))).toEqual([false, false])
})

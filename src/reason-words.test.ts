import { expect, test } from 'bun:test'
import { eventTypes } from './events/event-types.ts'
import { failures } from './failure.ts'
import { commandFailures, knownReason, reasonTitle, reasonWords } from './reason-words.ts'

const rooms = ['gateway', 'policies', 'mcp', 'fleet', 'events', 'usage', 'sinks', 'providers', 'connections']
const codeText =
  /'((?:policy|provider|mcp|client|refusals|usage|batch|sink|export|checkpoint|event|state|ledger)\.[a-z_]+)'/g
/** Texts of the same form that name something else: members, files, types of other protocols. */
const others = new Set([
  'event.id',
  'event.type',
  'checkpoint.json',
  'state.db',
  'ledger.db',
  'gateway.id',
  'state.json',
])

/** Every dotted code in the sources of the rooms that write reasons, apart from types of events. */
async function codesInSources(): Promise<string[]> {
  const found = new Set<string>()
  for (const room of rooms) {
    const folder = `${import.meta.dir}/${room}`
    for await (const path of new Bun.Glob('**/*.ts').scan(folder)) {
      if (path.endsWith('.test.ts') || path.includes('testing/')) continue
      const text = await Bun.file(`${folder}/${path}`).text()
      for (const [, code = ''] of text.matchAll(codeText)) found.add(code)
    }
  }
  const types: readonly string[] = eventTypes
  return [...found].filter((code) => !types.includes(code) && !others.has(code))
}

const ofCommands: ReadonlySet<string> = new Set(commandFailures)

test('has words for every reason code that the server writes', async () => {
  const codes = [...Object.keys(failures).filter((code) => !ofCommands.has(code)), ...(await codesInSources())]
  expect(codes.length).toBeGreaterThan(150)
  expect(codes.filter((code) => knownReason(code) === undefined)).toEqual([])
})

test('says a reason that an installation made up as what it is', () => {
  expect(reasonWords('refund.large')).toBe('a policy gave the reason “refund.large”')
  expect(reasonTitle('policy.pii')).toBe('It has personal data')
})

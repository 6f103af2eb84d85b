import { afterEach, expect, test } from 'bun:test'
import { main } from '../../main.ts'
import { recordingTerminal } from '../../testing/terminal.ts'

const servers: Bun.Server<undefined>[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true)
})

const summary = {
  kind: 'summary',
  chains: 1,
  records: 2,
  events: 3,
  findings: 0,
  not_covered: 1,
  checkpoint: null,
  keys: ['ab'],
}
const found = {
  ...{ kind: 'finding', what: 'events.missing', message: 'These events are missing', chain: 'worker', from: 2, to: 4 },
  ...{ event_id: null, column: null },
}

/** A control plane that answers with these lines. */
function terminal(...lines: object[]) {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => new Response(lines.map((line) => `${JSON.stringify(line)}\n`).join('')),
  })
  servers.push(server)
  return recordingTerminal({
    environment: { SERVICE_API_URL: `http://127.0.0.1:${server.port}`, HOME: '/nonexistent' },
  })
}

test('prints findings and exits with 1', async () => {
  const screen = terminal(
    found,
    { kind: 'chain', chain: 'worker', from: 0, to: 6, covered_to: 5 },
    { ...summary, findings: 1 },
  )
  expect(await main(['events', 'verify'], screen)).toBe(1)
  expect(screen.written()).toBe(
    'worker 2–4: These events are missing (events.missing)\n3 events in 2 records of 1 chains, 1 findings\n',
  )
  expect(screen.noted()).toContain('Not covered yet: worker 6–6')
  expect(screen.noted()).toContain('Compare with the id that you noted, or give it as --key: ab')
})

test('names a part of the log by its positions', async () => {
  const screen = terminal(
    { ...found, what: 'segment.index_altered', message: 'It differs', chain: null, from: 1, to: 9, column: 'facets' },
    { ...summary, findings: 1 },
  )
  expect(await main(['events', 'verify'], screen)).toBe(1)
  expect(screen.written()).toContain('log 1–9 facets: It differs (segment.index_altered)\n')
})

test('shows how far it is on a terminal, and prints that as lines with --json', async () => {
  const steps = [1, 5, 6, 30].map((done) => ({ kind: 'progress', done, of: 50 }))
  const screen = terminal(...steps, summary)
  expect(await main(['events', 'verify'], screen)).toBe(0)
  expect(screen.noted()).not.toContain('records read')
  const shown: string[] = []
  const watched = { ...terminal(...steps, summary), progress: (line: string) => shown.push(line) }
  expect(await main(['events', 'verify'], watched)).toBe(0)
  expect(shown).toEqual([2, 10, 12, 60].map((part) => `${part} % of 50 records read`).concat(''))
  const person = { ...terminal(...steps, summary), interactive: true }
  expect(await main(['events', 'verify'], person)).toBe(0)
  expect(person.noted().match(/\d+ % of 50/g)).toEqual(['10 % of 50', '60 % of 50'])
  const json = terminal(...steps, summary)
  expect(await main(['events', 'verify', '--json'], json)).toBe(0)
  expect(json.written().split('\n')).toHaveLength(steps.length + 2)
})

test('makes control characters from the databases visible', async () => {
  const sly = '\u001b[2K\u001b]0;owned\u0007'
  const screen = terminal(
    { ...found, chain: sly, event_id: sly },
    { kind: 'chain', chain: sly, from: 0, to: 2, covered_to: 1 },
    { ...summary, findings: 1, checkpoint: { number: 1, at: '2026-01-01T00:00:00.000Z', key_id: sly }, keys: [sly] },
  )
  expect(await main(['events', 'verify'], screen)).toBe(1)
  const shown = screen.written() + screen.noted()
  expect(['\u001b', '\u0007'].filter((character) => shown.includes(character))).toEqual([])
  expect(screen.written()).toContain('event \\u001b[2K')
})

test('reports rollups that differ apart from events, with the command that rebuilds them', async () => {
  const differs = { ...found, what: 'rollup.differs', message: 'It differs', chain: null, from: null, to: null }
  const screen = terminal({ ...differs, column: 'hour of all teams: requests' }, { ...summary, findings: 1 })
  expect(await main(['events', 'verify'], screen)).toBe(1)
  expect(screen.written()).toContain('sums hour of all teams: requests: It differs (rollup.differs)\n')
  expect(screen.noted()).toContain('gatehouse events rebuild-rollups')
  expect(screen.noted()).toContain('Events are as they were written, sums of them are not: 1 findings')
})

test('counts rebuilt rollups and reports those that it left', async () => {
  const lines = [
    { kind: 'progress', corrected: 3, growing: 0 },
    { kind: 'summary', corrected: 7, growing: 2 },
  ]
  const screen = terminal(...lines)
  expect(await main(['events', 'rebuild-rollups'], screen)).toBe(0)
  expect(screen.written()).toBe('7 sums corrected\n')
  expect(screen.noted()).toContain('2 hours and days were left')
  expect(await main(['events', 'rebuild-rollups', '--json'], terminal(...lines))).toBe(0)
  expect(await main(['events', 'rebuild-rollups'], terminal(...lines.slice(0, 1)))).toBe(1)
})

test('exits with 0 without findings, and prints the lines with --json', async () => {
  const screen = terminal(summary)
  expect(await main(['events', 'verify', '--json'], screen)).toBe(0)
  expect(screen.written()).toBe(`${JSON.stringify(summary)}\n`)
})

test('fails when the answer breaks off', async () => {
  const screen = terminal({ kind: 'chain', chain: 'worker', from: 0, to: 6, covered_to: 6 })
  expect(await main(['events', 'verify'], screen)).toBe(1)
  expect(screen.noted()).toContain('broke off')
})

test('refuses a wrong key or witness as a usage error', async () => {
  const screen = terminal(summary)
  expect(await main(['events', 'verify', '--key', 'short'], screen)).toBe(2)
  expect(await main(['events', 'verify', '--witness', '/nonexistent'], screen)).toBe(2)
})

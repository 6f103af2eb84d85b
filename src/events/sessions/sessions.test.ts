import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Verdict } from '../event.ts'
import { noAttribution } from '../event.ts'
import { emptyTestDatabases, openTestDatabases, type TestDatabases, testEvent, testOwner } from '../testing/ledger.ts'
import type { Visibility } from '../visibility.ts'
import { readSessions, type SessionQuery } from './read-sessions.ts'
import { removeOldSessions, sessionStatements } from './session-sums.ts'

const now = Date.parse('2026-01-01T12:00:00Z')
const ids = ['01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000002'] as const
let databases: TestDatabases
beforeAll(async () => {
  databases = await openTestDatabases()
})
afterAll(() => databases.remove())
beforeEach(() => emptyTestDatabases(databases))

interface Turn {
  session: string | null
  minutesAgo?: number
  token?: string
  team?: string | null
  client?: string
  verdict?: Verdict
  model?: string
  tools?: string[]
}

const outcome = ({
  session,
  minutesAgo = 0,
  token = ids[0],
  team = 'red',
  client,
  verdict,
  model = 'm',
  tools,
}: Turn) =>
  testEvent({
    event_type: 'gateway.request.outcome',
    timestamp: new Date(now - minutesAgo * 60_000).toISOString(),
    verdict: verdict ?? 'allow',
    details: { model, ...(tools && { called_tools: tools }) },
    event_attribution: {
      ...noAttribution,
      ...{ session_id: session, token_id: token, team_id: team, ...(client !== undefined && { client }) },
    },
    event_cost_attribution: {
      ...{ currency: 'USD', cost: 0.25, estimated: false, input_tokens: 10, output_tokens: 2, cached_input_tokens: 1 },
      ...{ reasoning_tokens: null, provider: 'p', model: 'm', price_source: null, spend_owner: null },
    },
  })

const ingest = async (turns: readonly Turn[]) =>
  await databases.ledger.write(sessionStatements(turns.map(outcome), now))

const list = async (asked: Partial<SessionQuery> = {}, visibility: Visibility = { teams: 'every', ownTokens: [] }) =>
  await readSessions(
    databases.ledger,
    { since: '1d', limit: 100, ...asked },
    { since: now - 86_400_000, caller: { principal: testOwner, visibility } },
  )
const names = async (...given: Parameters<typeof list>) =>
  (await list(...given)).sessions.map(({ session_id }) => session_id)

test('adds the requests of a session up over several batches, and keeps models and tools with their counts', async () => {
  await ingest([
    { session: 's', minutesAgo: 9, model: 'opus', client: 'claude-code' },
    { session: 's', minutesAgo: 8, model: 'opus', tools: ['Bash', 'Read'] },
  ])
  await ingest([
    { session: 's', minutesAgo: 7, model: 'haiku', tools: ['Bash'], verdict: 'error' },
    { session: 's', minutesAgo: 6, model: 'opus', verdict: 'block' },
  ])
  expect((await list()).sessions).toEqual([
    {
      session_id: 's',
      client: 'claude-code',
      token: { id: ids[0], name: null },
      user: null,
      team_id: 'red',
      first_at: '2026-01-01T11:51:00.000Z',
      last_at: '2026-01-01T11:54:00.000Z',
      ...{ requests: 4, errors: 1, findings: 1, input_tokens: 40, output_tokens: 8, cost: 1 },
      models: [
        { name: 'opus', count: 3 },
        { name: 'haiku', count: 1 },
      ],
      tools: [
        { name: 'Bash', count: 2 },
        { name: 'Read', count: 1 },
      ],
    },
  ])
})

test('writes nothing for events that are no outcome, or have no session', () => {
  expect(sessionStatements([outcome({ session: null }), testEvent({ event_type: 'token.created' })], now)).toEqual([])
})

test('keeps sessions of the same id apart where other tokens sent them', async () => {
  await ingest([{ session: 's' }, { session: 's', token: ids[1] }])
  expect((await list()).sessions.map(({ token, requests }) => [token.id, requests])).toEqual([
    [ids[1], 1],
    [ids[0], 1],
  ])
  expect((await list({ token: ids[0] })).sessions).toHaveLength(1)
})

test('keeps the 40 most used names of models, whatever callers invent', async () => {
  await ingest([...Array(3).fill({ session: 's', model: 'often' })])
  for (let batch = 0; batch < 3; batch += 1) {
    await ingest(Array.from({ length: 30 }, (_, index) => ({ session: 's', model: `model-${batch}-${index}\0` })))
  }
  const [{ models } = { models: [] }] = (await list()).sessions
  expect(models).toHaveLength(40)
  expect(models[0]).toEqual({ name: 'often', count: 3 })
})

test('lists the newest first in pages that show each session once', async () => {
  await ingest(Array.from({ length: 7 }, (_, index) => ({ session: `s${index}`, minutesAgo: index % 3 })))
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await list({ limit: 3, cursor })
    seen.push(...page.sessions.map(({ session_id }) => session_id))
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  expect(seen).toEqual(await names())
  expect(seen.toSorted()).toEqual(['s0', 's1', 's2', 's3', 's4', 's5', 's6'])
  const { next_cursor: other } = await list({ limit: 3 })
  expect(list({ limit: 3, client: 'codex', cursor: other ?? '' })).rejects.toMatchObject({ code: 'invalid_cursor' })
})

test('shows a caller the sessions of its teams, or of its own tokens, and filters by client and id', async () => {
  await ingest([
    { session: 'a', team: 'red', client: 'codex' },
    { session: 'b', team: 'blue', token: ids[1] },
    { session: 'c', team: null },
  ])
  expect(await names({}, { teams: ['red'], ownTokens: [] })).toEqual(['a'])
  expect(await names({}, { teams: ['red', 'blue'], ownTokens: [] })).toEqual(['b', 'a'])
  expect(await names({}, { teams: [], ownTokens: [ids[1]] })).toEqual(['b'])
  expect(await names({}, { teams: [], ownTokens: [] })).toEqual([])
  expect(await names({ client: 'codex' })).toEqual(['a'])
  expect(await names({ session_id: 'c' })).toEqual(['c'])
  expect(await names({ team: ids[1] })).toEqual([])
})

test('answers each filter from an index in the order of the page', async () => {
  for (const [column, value] of [
    ['team_id', 'red'],
    ['user_id', 'u'],
    ['token_id', ids[0]],
    ['client', 'codex'],
  ] as const) {
    const plan = await databases.ledger.read<{ detail: string }>(
      `explain query plan select * from event_sessions s where s.last_at >= 1 and s.${column} = '${value}'
        order by s.last_at desc, s.id desc limit 10`,
    )
    expect(plan.map(({ detail }) => detail).join()).toMatch(/^SEARCH s USING INDEX event_sessions_\w+ [^,]*$/)
  }
})

test('removes sessions whose last request is older than the retention', async () => {
  await ingest([{ session: 'old', minutesAgo: 120 }, { session: 'long', minutesAgo: 120 }, { session: 'long' }])
  await removeOldSessions(databases.ledger, { now, retention: 3_600_000 })
  expect(await names()).toEqual(['long'])
})

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createRecorder } from '../../events/change.ts'
import { type Event, noAttribution } from '../../events/event.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import type { Visibility } from '../../events/visibility.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import type { StoredPolicy } from '../stored-policy.ts'
import { replayPolicy } from './replay.ts'

const now = Date.parse('2026-05-01T12:00:00Z')
const clock = { now: () => now, monotonic: () => now }
let store: TemporaryStore
beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

const policy: StoredPolicy = {
  id: Bun.randomUUIDv7(),
  kind: 'condition',
  stages: ['pre_request'],
  config: { verdict: 'deny', reason_code: 'test.model' },
  when: 'request.model == "gpt-4o"',
  targets: {},
  ...{ position: 1, mode: 'monitor', whenBroken: 'deny', enabled: true, version: 1 },
}

function outcome(request: string, { ago = 0, team = 'team-a', token = 'token', model = 'gpt-4o' } = {}): Event {
  return testEvent({
    request_id: request,
    timestamp: new Date(now - ago).toISOString(),
    event_attribution: { ...noAttribution, team_id: team, token_id: token },
    details: { route: 'POST /v1/chat/completions', model, provider: 'openai' },
  })
}
const record = (events: readonly Event[]) =>
  createRecorder({ ...store, announce: () => undefined, clock, log: silentLog }).append(events)

const every: Visibility = { teams: 'every', ownTokens: [] }
const replay = (visibility = every, signal = new AbortController().signal, tried = policy) =>
  replayPolicy({
    ...{ policy: tried, ledger: store.ledger, clock, since: now - 3_600_000, visibility },
    tools: { fetch, resolve: async () => [], privateWebhooks: false, throwIfCut: () => undefined, signal },
  })

test('replays the outcomes since a time, newest first, and no other events', async () => {
  await record([
    outcome('young', { ago: 1000 }),
    outcome('old', { ago: 2000 }),
    outcome('too old', { ago: 3_600_001 }),
    outcome('other model', { model: 'claude' }),
    { ...outcome('no outcome'), event_type: 'decision' },
    outcome('youngest'),
  ])
  const found = await replay()
  expect(found).toMatchObject({ examined: 4, matched: 3, verdicts: { deny: 3 }, undecided: 0, complete: true })
  expect(found.results.map(({ request_id }) => request_id)).toEqual(['youngest', 'young', 'old'])
})

test('replays only what the caller sees', async () => {
  await record([
    outcome('one'),
    outcome('two', { team: 'team-b', token: 'own' }),
    { ...outcome('none'), event_attribution: noAttribution },
  ])
  const seen = async (visibility: Visibility) =>
    (await replay(visibility)).results.map(({ request_id }) => request_id).toSorted()
  expect(await seen(every)).toEqual(['none', 'one', 'two'])
  expect(await seen({ teams: ['team-a'], ownTokens: [] })).toEqual(['one'])
  expect(await seen({ teams: [], ownTokens: ['own'] })).toEqual(['two'])
  expect(await seen({ teams: [], ownTokens: [] })).toEqual([])
})

test('leaves out records that cannot be read', async () => {
  await record([outcome('damaged')])
  await store.ledger.write([{ sql: 'update event_blocks set body = zeroblob(9)', args: [] }])
  await record([outcome('sound')])
  expect(await replay()).toMatchObject({ examined: 1, results: [{ request_id: 'sound' }] })
})

test('ends when the caller has left, and says that it is not complete', async () => {
  await record([outcome('one')])
  expect(await replay(every, AbortSignal.abort())).toMatchObject({ examined: 0, complete: false })
})

test('shows where a policy finds something in recorded texts', async () => {
  const text = `${'before '.repeat(20)}Project Falcon${' after'.repeat(20)}`
  await record([{ ...outcome('recorded'), prompt_redacted: text }, outcome('not recorded')])
  const terms: StoredPolicy = {
    ...policy,
    ...{ kind: 'term-filter', config: { terms: ['project falcon'], action: 'block' }, when: null },
  }
  const { verdicts, undecided, results } = await replay(every, undefined, terms)
  expect([verdicts, undecided]).toEqual([{ block: 1 }, 1])
  const [excerpt] = results[0]?.excerpts ?? []
  expect(excerpt).toMatchObject({ found: 'Project Falcon', label: 'TERM' })
  expect([excerpt?.before.length, excerpt?.after.length]).toEqual([61, 61])
})

test('replays a policy that redacts, and leaves undecided what is taken out before a text is recorded', async () => {
  await record([{ ...outcome('recorded'), prompt_redacted: 'about Project Falcon' }])
  const terms = { kind: 'term-filter', config: { terms: ['project falcon'], action: 'redact' }, when: null } as const
  const { verdicts, results } = await replay(every, undefined, { ...policy, ...terms })
  expect([verdicts, results[0]?.excerpts[0]?.found]).toEqual([{ redact: 1 }, 'Project Falcon'])
  const personal = { kind: 'pii', config: { action: 'block' }, when: null } as const
  const unknown = await replay(every, undefined, { ...policy, ...personal })
  expect(unknown).toMatchObject({ matched: 1, undecided: 1, unreplayed: { text_not_recorded: 1 }, verdicts: {} })
})

test('says which parts of a condition held, with their values and their place in the text', async () => {
  await record([{ ...outcome('recorded'), prompt_redacted: 'open the vault' }])
  const when = 'request.model == "gpt-4o" && (request.stream || request.text.contains("vault"))'
  const { results } = await replay(every, undefined, { ...policy, when })
  expect(results[0]?.condition).toEqual([
    { part: 'request.model == "gpt-4o"', values: [{ name: 'request.model', value: '"gpt-4o"' }] },
    { part: 'request.text.contains("vault")', values: [{ name: 'request.text', value: '"open the vault"' }] },
  ])
  expect(results[0]?.excerpts).toEqual([{ before: 'open the ', found: 'vault', after: '', label: 'CONDITION' }])
})

test('replays a policy whose condition has parentheses at the end of a part', async () => {
  await record([outcome('one')])
  const when = '!(request.model == "other" || request.stream)'
  const { results } = await replay(every, undefined, { ...policy, when })
  expect(results.map(({ condition }) => condition.map(({ part }) => part))).toEqual([[when]])
})

test('leaves undecided what a policy of the kind found, because it is taken out before a text is recorded', async () => {
  const filter: StoredPolicy = {
    ...{ ...policy, kind: 'term-filter', when: null },
    config: { terms: ['falcon'], action: 'block' },
  }
  const found = (kind: string, verdict: string) => ({
    policy_results: [{ policy_id: 'p', kind, stage: 'pre_request', mode: 'enforce', verdict }],
  })
  const recorded = (request: string, results: object) => ({
    ...outcome(request),
    details: { ...outcome(request).details, ...results },
    prompt_redacted: 'user: all about [TERM]',
  })
  await record([
    recorded('found', found('term-filter', 'block')),
    recorded('allowed', found('term-filter', 'allow')),
    recorded('found by another kind', found('pii', 'redact')),
  ])
  const said = await replay(every, undefined, filter)
  expect(said).toMatchObject({ matched: 3, undecided: 1, verdicts: { allow: 2 }, unreplayed: { text_not_recorded: 1 } })
})

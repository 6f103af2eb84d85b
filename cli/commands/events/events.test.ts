import { afterAll, expect, test } from 'bun:test'
import { createApi } from '../../command/api.ts'
import { main } from '../../main.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { eventLine, type ListedEvent, storedVerdict, wideEventLine } from './event-line.ts'
import { followEvents } from './follow.ts'

const event = (event_id: string, timestamp: string, more: Partial<ListedEvent> = {}): ListedEvent => ({
  event_id,
  event_type: 'gateway.request.outcome',
  timestamp,
  verdict: 'allow',
  reason_code: 'ok',
  ...more,
})

/** A control plane of one route, which answers what a test has put in. */
const requests: { path: string; query: Record<string, string>; authorization: string | null }[] = []
let answers: (() => Response)[] = []
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const url = new URL(request.url)
    const authorization = request.headers.get('authorization')
    requests.push({ path: url.pathname, query: Object.fromEntries(url.searchParams), authorization })
    return answers.shift()?.() ?? Response.json({ events: [], next_cursor: null, follow: 'f0' })
  },
})
afterAll(() => server.stop(true))

function answering(...next: (() => Response)[]): void {
  requests.length = 0
  answers = next
}

const page =
  (events: readonly ListedEvent[], next_cursor: string | null = null, follow = 'f0') =>
  () =>
    Response.json({ events, next_cursor, follow })

const refusing = (status: number, code: string) => () =>
  Response.json(
    { error: { message: 'No', type: 'access_denied', param: 'since', code }, request_id: 'r-1' },
    { status },
  )

const terminal = () =>
  recordingTerminal({ environment: { SERVICE_API_URL: server.url.origin, SERVICE_API_TOKEN: 'gth_sesame' } })

test('prints a dash for a field that an event does not have', () => {
  expect(eventLine(event('a', '2026-01-01T00:00:00.000Z', { details: { model: 'm' } }))).toBe(
    '- gateway.request.outcome allow - -',
  )
})

const idsThemselves = (id: string) => id

test('the wide line shows status, latency, cost, and names of token and policies', () => {
  const policy_results = [{ policy_id: 'p1' }, { policy_id: 'p2' }, { policy_id: 'p1' }]
  const made = event('a', '2026-01-01T00:00:00.000Z', {
    details: { model: 'gpt-x', status: 200, latency_ms: 12.4, policy_results },
    event_attribution: { token_id: 't1', user_id: 'u1' },
    event_cost_attribution: { cost: 2e-6 },
  })
  const names = new Map([
    ['t1', 'app'],
    ['p1', 'pii'],
  ])
  const line = wideEventLine(made, (id) => names.get(id) ?? id, recordingTerminal())
  expect(line.split(/ +/)).toEqual([
    ...['2026-01-01T00:00:00.000Z', 'gateway.request.outcome', 'allow', '200', '12', 'ms', '0.000002', 'app'],
    ...['gpt-x', 'pii,p2', 'ok'],
  ])
})

test('a verdict has its colour where a person reads, and none with NO_COLOR', () => {
  const blocked = event('a', '2026-01-01T00:00:00.000Z', { verdict: 'block' })
  const line = (environment: Record<string, string>) =>
    wideEventLine(blocked, idsThemselves, recordingTerminal({ interactive: true, environment }))
  expect(line({})).toContain('\u001b[31mblock')
  expect(line({ NO_COLOR: '1' })).not.toContain('\u001b')
})

test('makes control characters from a provider visible', () => {
  const line = wideEventLine(
    event('a', '2026-01-01T00:00:00.000Z', { details: { model: 'x\u001b[2J\n' } }),
    idsThemselves,
    recordingTerminal(),
  )
  expect(line).toContain('x\\u001b[2J\\u000a')
})

test.each([
  ['allowed', 'allow'],
  ['BLOCKED', 'block'],
  ['Denied', 'deny'],
  ['redacted', 'redact'],
  ['rewritten', 'rewrite'],
  ['escalated', 'escalate'],
  ['rate_limited', 'rate_limit'],
  ['approval_required', 'approval_required'],
  ['error', 'error'],
])('the verdict %s means %s', (word, stored) => {
  expect(storedVerdict(word)).toBe(stored)
})

test('an unknown verdict stops the command and lists the accepted values', async () => {
  answering()
  const screen = terminal()
  expect(await main(['events', 'tail', '--since', '1h', '--verdict', 'maybe'], screen)).toBe(2)
  expect(screen.noted()).toContain('allow, allowed, block, blocked')
  expect(requests).toEqual([])
})

test('tail sends its filters and prints the page in its order', async () => {
  answering(page([event('b', '2026-01-02T00:00:00.000Z'), event('a', '2026-01-01T00:00:00.000Z')], 'c2'))
  const screen = terminal()
  const filters = {
    ...{ 'event-type': 'decision', 'gateway-id': 'g', until: '2026-02-01T00:00:00Z', 'request-id': 'r' },
    ...{
      'exchange-id': 'x',
      'exchange-prefix': '01990000',
      'session-id': 's',
      token: 'Build',
      'token-id': 't',
      user: 'a@example.com',
      'user-id': 'u',
    },
    ...{
      team: 'Red',
      dimension: 'customer=acme',
      model: 'm',
      provider: 'p',
      policy: 'No PII',
      'reason-code': 'ok',
      'reason-text': 'o',
    },
    ...{ status: '4xx', 'min-cost': '0.5', 'min-latency-ms': '900' },
  }
  const flags = [
    ...['--since', '1h', '--limit', '2', '--order', 'oldest', '--verdict', 'BLOCKED'],
    ...Object.entries(filters).flatMap(([name, value]) => [`--${name}`, value]),
  ]
  expect(await main(['events', 'tail', ...flags], screen)).toBe(0)
  expect(requests).toEqual([
    {
      path: '/v1/events',
      query: {
        ...{ since: '1h', limit: '2', order: 'oldest', verdict: 'block' },
        ...Object.fromEntries(Object.entries(filters).map(([name, value]) => [name.replaceAll('-', '_'), value])),
      },
      authorization: 'Bearer gth_sesame',
    },
  ])
  expect(screen.written()).toBe('- gateway.request.outcome allow - -\n'.repeat(2))
  expect(screen.noted()).toContain('--cursor c2')
})

test('tail --json prints the response object', async () => {
  answering(page([event('a', '2026-01-01T00:00:00.000Z')], 'c2'))
  const screen = terminal()
  expect(await main(['events', 'tail', '--since', '1h', '--limit', '1', '--json'], screen)).toBe(0)
  expect(JSON.parse(screen.written())).toEqual({
    ...{ events: [event('a', '2026-01-01T00:00:00.000Z')], next_cursor: 'c2', follow: 'f0' },
  })
})

test('tail asks for the rest of a page that the control plane ended early', async () => {
  const [a, b, c] = ['a', 'b', 'c'].map((id) => event(id, '2026-01-01T00:00:00.000Z'))
  if (a === undefined || b === undefined || c === undefined) throw new Error('No events')
  answering(page([a], 'c1'), page([], 'c2'), page([b, c], 'c3'))
  const screen = terminal()
  expect(await main(['events', 'tail', '--since', '1h', '--limit', '3', '--json'], screen)).toBe(0)
  expect(JSON.parse(screen.written())).toEqual({ events: [a, b, c], next_cursor: 'c3', follow: 'f0' })
  expect(requests.map(({ query: { cursor, limit } }) => [cursor, limit])).toEqual([
    [undefined, '3'],
    ['c1', '2'],
    ['c2', '2'],
  ])
})

test('prints on standard output that a page is empty', async () => {
  answering(page([]))
  const screen = terminal()
  expect(await main(['events', 'tail', '--since', '1h'], screen)).toBe(0)
  expect(screen.written()).toBe('No events found\n')
})

test.each([
  ['--limit', '101'],
  ['--limit', '0'],
  ['--limit', 'x'],
  ['--follow-interval-secs', '0'],
])('%s %s is a usage error', async (flag, value) => {
  expect(await main(['events', 'tail', '--since', '1h', flag, value], terminal())).toBe(2)
})

test('reports a refusal with its code and advice, without the token, and exits with 1', async () => {
  answering(refusing(403, 'permission_denied'))
  const screen = terminal()
  expect(await main(['events', 'tail', '--since', '1h'], screen)).toBe(1)
  expect(screen.noted()).toContain('error: No\n')
  expect(screen.noted()).toContain('code permission_denied, status 403, field since, request r-1')
  expect(screen.noted()).not.toContain('sesame')
})

test('follows no redirect, because the token would go with it', async () => {
  answering(() => Response.redirect('http://127.0.0.1:1/elsewhere'))
  expect(await main(['events', 'tail', '--since', '1h'], terminal())).toBe(1)
  expect(requests).toHaveLength(1)
})

test('names the control plane that it cannot reach', async () => {
  const screen = recordingTerminal({ environment: { SERVICE_API_URL: 'http://127.0.0.1:1' } })
  expect(await main(['events', 'tail', '--since', '1h'], screen)).toBe(1)
  expect(screen.noted()).toContain('http://127.0.0.1:1 could not be reached')
})

test('export writes the bytes of the answer unchanged', async () => {
  const bytes = 'event_id,timestamp\r\na,"é\n"\r\n'
  answering(() => new Response(bytes))
  const screen = terminal()
  expect(await main(['events', 'export', '--since', '1h', '--format', 'csv'], screen)).toBe(0)
  expect(screen.written()).toBe(bytes)
  expect(requests[0]).toMatchObject({ path: '/v1/events/export', query: { since: '1h', format: 'csv' } })
})

test('export sends its filters and columns', async () => {
  answering(() => new Response(''))
  const flags = [
    '--since',
    '1h',
    '--format',
    'csv',
    '--columns',
    'model,cost',
    '--only-columns',
    '--team',
    'Red',
    '--verdict',
    'Denied',
  ]
  expect(await main(['events', 'export', ...flags], terminal())).toBe(0)
  const query = {
    since: '1h',
    format: 'csv',
    columns: 'model,cost',
    only_columns: 'true',
    team: 'Red',
    verdict: 'deny',
  }
  expect(requests[0]).toMatchObject({ path: '/v1/events/export', query })
})

test('export shows its progress on a terminal, and not among the data', async () => {
  answering(() => new Response('x'.repeat(600_000)))
  const lines: string[] = []
  const screen = { ...terminal(), progress: (line: string) => void lines.push(line) }
  expect(await main(['events', 'export', '--since', '1h', '--format', 'csv'], screen)).toBe(0)
  expect(lines.at(-1)).toBe('0.6 MB')
  expect(screen.written()).toBe('x'.repeat(600_000))
})

/** Follows for as many polls as there are answers, then ends by the rejection of its sleep. */
async function follow(...rounds: (() => Response)[]): Promise<ReturnType<typeof terminal>> {
  answering(...rounds)
  const screen = terminal()
  const api = createApi({ apiUrl: server.url.origin, apiToken: null }, fetch)
  const sleep = async () => {
    if (answers.length === 0) throw new Error('enough')
  }
  const following = followEvents({
    api,
    query: { since: '1h', limit: '2' },
    print: ({ event_id }) => event_id,
    terminal: screen,
    sleep,
  })
  expect(following).rejects.toThrow('enough')
  await following.catch(() => undefined)
  return screen
}

const [t1, t2, t3] = ['2026-01-01T00:00:01.000Z', '2026-01-01T00:00:02.000Z', '2026-01-01T00:00:03.000Z']

test('follow reads every page of the window and goes on with what arrives', async () => {
  const screen = await follow(
    page([event('a', t1), event('b', t2)], 'next', 'f1'),
    page([event('c', t2)], null, 'f1'),
    page([], null, 'f1'),
    page([event('d', t3), event('late', t1)], 'f2', 'f2'),
    page([event('e', t3)], null, 'f3'),
    page([event('f', t3)], null, 'f4'),
  )
  expect(screen.written()).toBe('a\nb\nc\nd\nlate\ne\nf\n')
  const asked = { since: '1h', limit: '2', order: 'oldest' }
  expect(requests.map(({ query }) => query)).toEqual([
    asked,
    ...['next', 'f1', 'f1', 'f2', 'f3'].map((cursor) => ({ ...asked, cursor })),
  ])
})

test('follow waits while the control plane cannot be reached, and ends at a refusal', async () => {
  const screen = await follow(page([event('a', t1)]), refusing(503, 'dependency_unavailable'), page([event('b', t2)]))
  expect(screen.written()).toBe('a\nb\n')
  expect(screen.noted()).toContain('trying again')
  answering(page([]), refusing(401, 'invalid_api_token'))
  expect(await main(['events', 'tail', '--since', '1h', '--follow', '--follow-interval-secs', '1'], terminal())).toBe(1)
})

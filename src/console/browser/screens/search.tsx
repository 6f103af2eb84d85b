/** What was typed or pasted into the search: an id leads to its record, words to screens and to records with that name. */
import { useEffect } from 'preact/hooks'
import { href, navigate, queryValue } from '../address.ts'
import { Refusal } from '../api/request.ts'
import { api } from '../api/routes.ts'
import { PageHeader } from '../parts/frame/frame.tsx'
import { asRefusal, ErrorNote, Show, useLoaded } from '../parts/loaded.tsx'
import { Empty } from '../parts/table.tsx'
import { userText } from '../parts/user-text.tsx'
import type { Screen } from '../screen.ts'
import { hasPermission } from '../session.ts'
import { partOfId, timeOfPrefix } from './part-of-id.ts'
import { readChain } from './policies/policies.tsx'
import { type Hit, recordsOfId, recordsWith } from './searched-records.ts'

const isId = (words: string): boolean => /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(words)
const since = '30d'
const most = 20

/** What a place has for the words. */
interface Answer {
  hits: readonly Hit[]
  /** Whether it was searched to its end. */
  all: boolean
}

interface Found extends Answer {
  /** Why a place did not answer. */
  refusal: Refusal | null
}

const whole = async (hits: Promise<readonly Hit[]>): Promise<Answer> => ({ hits: await hits, all: true })

/** The hits of each place; one that may not be asked, or knows nothing of it, has none. Throws where all others fail. */
async function hitsOf(asked: readonly Promise<Answer>[]): Promise<Found> {
  const answers = await Promise.allSettled(asked)
  const answered = answers.filter((answer) => answer.status === 'fulfilled').map(({ value }) => value)
  const hits = answered.flatMap((answer) => answer.hits)
  const failed = answers.find((answer) => answer.status === 'rejected' && !saysNothing(answer.reason))
  const reason: unknown = failed?.status === 'rejected' ? failed.reason : undefined
  if (hits.length === 0 && failed !== undefined) throw reason
  return {
    hits,
    all: answered.every(({ all }) => all),
    refusal: failed === undefined ? null : asRefusal(reason),
  }
}

const saysNothing = (reason: unknown): boolean =>
  reason instanceof Refusal && (reason.status === 403 || reason.status === 404)

/** A page of events ends early where little is found in a long log. */
const mostPages = 10

/** The first events of a search, as many as its limit says. */
async function requestsOf(
  query: Readonly<Record<string, string | number>> & { since: string; limit: number },
  hitOf: (id: string) => Hit,
  signal: AbortSignal,
): Promise<Answer> {
  const read = (cursor: string | null) => api('GET /v1/events', { query: { ...query, cursor }, signal })
  const hits: Hit[] = []
  let cursor: string | null = null
  for (let page = 0; page < mostPages; page += 1) {
    const { events, next_cursor } = await read(cursor)
    hits.push(...events.map(({ exchange_id, event_id }) => hitOf(exchange_id ?? event_id)))
    if (next_cursor === null || hits.length >= query.limit) return { hits: hits.slice(0, query.limit), all: true }
    cursor = next_cursor
  }
  return { hits, all: false }
}

const toRequest = (id: string, title: string, what: string): Hit => ({ to: href(`/traffic/${id}`), title, what })

function byId(id: string, signal: AbortSignal): Promise<Found> {
  const query = { since, exchange_id: id, limit: 1 }
  return hitsOf([
    whole(recordsOfId(id, signal)),
    requestsOf(query, () => toRequest(id, id, 'Exchange'), signal),
    byRequest(id, signal),
  ])
}

const byRequest = (id: string, signal: AbortSignal): Promise<Answer> =>
  requestsOf({ since, request_id: id, limit: 1 }, (exchange) => toRequest(exchange, id, 'Request'), signal)

/** Requests whose id begins so. */
async function byPrefix(prefix: string, signal: AbortSignal): Promise<Answer> {
  const time = timeOfPrefix(prefix, Date.now())
  if (time === null) return { hits: [], all: true }
  const query = { ...time, exchange_prefix: prefix, event_type: 'gateway.request.outcome', limit: most }
  return await requestsOf(query, (exchange) => toRequest(exchange, exchange, 'Request'), signal)
}

function byWords(given: string, screens: readonly Screen[], signal: AbortSignal): Promise<Found> {
  const id = partOfId(given)
  const words = id ?? given
  const fits = (name: string) => name.toLowerCase().includes(words.toLowerCase())
  const places = screens
    .filter(
      ({ menu, title, permission }) =>
        menu !== undefined && fits(title) && (permission === null || hasPermission(permission)),
    )
    .map(({ path, title }) => ({ to: href(path), title, what: 'Screen' }))
  return hitsOf([
    whole(Promise.resolve(places)),
    whole(tokensNamed(words, signal)),
    whole(policiesNamed(words, signal)),
    ...recordsWith(words, signal).map(whole),
    byRequest(words, signal),
    ...(id === null ? [] : [byPrefix(id, signal)]),
  ])
}

async function tokensNamed(words: string, signal: AbortSignal): Promise<Hit[]> {
  const query = { name: words.slice(0, 200), limit: most }
  const { tokens, next_cursor } = await api('GET /v1/tokens', { query, signal })
  const found = tokens.map(({ id, name }) => ({ to: href(`/tokens/${id}`), title: name, what: 'Token' }))
  if (next_cursor === null) return found
  return [...found, { to: href('/tokens', { name: words }), title: 'All tokens with this name', what: 'Tokens' }]
}

async function policiesNamed(words: string, signal: AbortSignal): Promise<Hit[]> {
  if (!hasPermission('policies:read')) return []
  const fits = (name: string) => name.toLowerCase().includes(words.toLowerCase())
  const named = (await readChain(signal)).filter(({ id, name }) => fits(name) || (partOfId(words) !== null && fits(id)))
  return named.map(({ id, name }) => ({ to: href(`/policies/${id}`), title: name, what: 'Policy' }))
}

/** Where the hits lead, if there is one alone and there can be no other. */
const onlyOf = ({ hits, all, refusal }: Found): string | undefined =>
  hits.length === 1 && all && refusal === null ? hits[0]?.to : undefined

const nothing: Found = { hits: [], all: true, refusal: null }

export function Search({ screens }: { screens: readonly Screen[] }) {
  const words = (queryValue('q') ?? '').trim()
  const found = useLoaded(words, async (signal) => ({
    words,
    ...(words === '' ? nothing : await (isId(words) ? byId(words, signal) : byWords(words, screens, signal))),
  }))
  // What was found for other words is shown until these are answered, and leads nowhere by itself.
  const only =
    (isId(words) || partOfId(words) !== null) && found.value?.words === words ? onlyOf(found.value) : undefined
  useEffect(() => {
    if (only !== undefined) navigate(only, { replace: true })
  }, [only])
  return (
    <>
      <PageHeader title={words === '' ? 'Search' : `Search: ${words}`} />
      <section class="card">
        <Show of={found} rows={4}>
          {({ hits, all, refusal }) => (
            <>
              {refusal !== null && (
                <ErrorNote refusal={refusal} retry={found.retry} kept="There may be more than what is shown." />
              )}
              {hits.length === 0 ? <Nothing words={words} /> : <Hits hits={hits} />}
              {!all && (
                <p class="note" role="status">
                  Not all requests were searched: there may be more. With more characters of an id, the search is
                  shorter.
                </p>
              )}
            </>
          )}
        </Show>
      </section>
    </>
  )
}

const Nothing = ({ words }: { words: string }) => (
  <Empty title={words === '' ? 'Type what you look for' : `Nothing matches “${words}”`}>
    <p>
      Search takes the id of any record or at least 8 characters of it; of a request the first ones. It also takes a
      request id of the last 30 days, or part of the name of a screen, token, policy, team, person, model, provider, MCP
      server, gateway, budget, group or application.
    </p>
  </Empty>
)

const Hits = ({ hits }: { hits: readonly Hit[] }) => (
  <ul class="hits">
    {hits.map(({ to, title, what }) => (
      <li key={to}>
        <span class="tag">{what}</span> <a href={to}>{userText(title)}</a>
      </li>
    ))}
  </ul>
)

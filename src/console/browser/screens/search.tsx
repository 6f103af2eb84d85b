/** What was typed or pasted into the search: an id leads to its record, words to screens and to records with that name. */
import { useEffect } from 'preact/hooks'
import { href, navigate, queryValue } from '../address.ts'
import { Refusal } from '../api/request.ts'
import { api } from '../api/routes.ts'
import { PageHeader } from '../parts/frame/frame.tsx'
import { Show, useLoaded } from '../parts/loaded.tsx'
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

/** The hits of each place; one that may not be asked, or knows nothing of it, has none. Throws where all others fail. */
async function hitsOf(asked: readonly Promise<Hit[]>[]): Promise<Hit[]> {
  const answers = await Promise.allSettled(asked)
  const hits = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  const failed = answers.find((answer) => answer.status === 'rejected' && !saysNothing(answer.reason))
  if (hits.length === 0 && failed?.status === 'rejected') throw failed.reason
  return hits
}

const saysNothing = (reason: unknown): boolean =>
  reason instanceof Refusal && (reason.status === 403 || reason.status === 404)

function byId(id: string, signal: AbortSignal): Promise<Hit[]> {
  return hitsOf([
    recordsOfId(id, signal),
    api('GET /v1/events', { query: { since, exchange_id: id, limit: 1 }, signal }).then(({ events }) =>
      events.map(() => ({ to: href(`/traffic/${id}`), title: id, what: 'Exchange' })),
    ),
    byRequest(id, signal),
  ])
}

const byRequest = (id: string, signal: AbortSignal): Promise<Hit[]> =>
  api('GET /v1/events', { query: { since, request_id: id, limit: 1 }, signal }).then(({ events }) =>
    events.map(({ exchange_id, event_id }) => ({
      to: href(`/traffic/${exchange_id ?? event_id}`),
      title: id,
      what: 'Request',
    })),
  )

/** Requests whose id begins so. */
async function byPrefix(prefix: string, signal: AbortSignal): Promise<Hit[]> {
  const time = timeOfPrefix(prefix, Date.now())
  if (time === null) return []
  const query = { ...time, exchange_prefix: prefix, event_type: 'gateway.request.outcome', limit: most }
  const { events } = await api('GET /v1/events', { query, signal })
  return events.map(({ exchange_id, event_id }) => ({
    to: href(`/traffic/${exchange_id ?? event_id}`),
    title: exchange_id ?? event_id,
    what: 'Request',
  }))
}

function byWords(given: string, screens: readonly Screen[], signal: AbortSignal): Promise<Hit[]> {
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
    Promise.resolve(places),
    api('GET /v1/tokens', { query: { name: words.slice(0, 200), limit: most }, signal }).then(
      ({ tokens, next_cursor }) => [
        ...tokens.map(({ id, name }) => ({ to: href(`/tokens/${id}`), title: name, what: 'Token' })),
        ...(next_cursor === null
          ? []
          : [{ to: href('/tokens', { name: words }), title: 'All tokens with this name', what: 'Tokens' }]),
      ],
    ),
    policiesNamed(words, signal),
    ...recordsWith(words, signal),
    byRequest(words, signal),
    ...(id === null ? [] : [byPrefix(id, signal)]),
  ])
}

async function policiesNamed(words: string, signal: AbortSignal): Promise<Hit[]> {
  if (!hasPermission('policies:read')) return []
  const fits = (name: string) => name.toLowerCase().includes(words.toLowerCase())
  const named = (await readChain(signal)).filter(({ id, name }) => fits(name) || (partOfId(words) !== null && fits(id)))
  return named.map(({ id, name }) => ({ to: href(`/policies/${id}`), title: name, what: 'Policy' }))
}

/** Where the hits lead, if there is one alone. */
const onlyOf = (hits: readonly Hit[]): string | undefined => (hits.length === 1 ? hits[0]?.to : undefined)

export function Search({ screens }: { screens: readonly Screen[] }) {
  const words = (queryValue('q') ?? '').trim()
  const found = useLoaded(words, async (signal) => ({
    words,
    hits: words === '' ? [] : await (isId(words) ? byId(words, signal) : byWords(words, screens, signal)),
  }))
  // What was found for other words is shown until these are answered, and leads nowhere by itself.
  const only =
    (isId(words) || partOfId(words) !== null) && found.value?.words === words ? onlyOf(found.value.hits) : undefined
  useEffect(() => {
    if (only !== undefined) navigate(only, { replace: true })
  }, [only])
  return (
    <>
      <PageHeader title={`Search: ${words}`} />
      <section class="card">
        <Show of={found} rows={4}>
          {({ hits }) =>
            hits.length === 0 ? (
              <Empty title={words === '' ? 'Type what you look for' : `Nothing matches “${words}”`}>
                <p>
                  Search takes the id of any record or its first 8 characters, a request id of the last 30 days, or part
                  of the name of a screen, token, policy, team, person, model, provider, MCP server, gateway, budget,
                  group or application.
                </p>
              </Empty>
            ) : (
              <ul class="hits">
                {hits.map(({ to, title, what }) => (
                  <li key={to}>
                    <span class="tag">{what}</span> <a href={to}>{userText(title)}</a>
                  </li>
                ))}
              </ul>
            )
          }
        </Show>
      </section>
    </>
  )
}

/**
 * The limits of a token: its own, and those of its team, its person, the organization and its groups. Budgets of MCP
 * servers and of the owner that a gateway names for its spend are left out: they depend on the request.
 */
import type { ComponentChildren } from 'preact'
import { href } from '../../address.ts'
import { api, type TokenLimits, type TokenRecord } from '../../api/routes.ts'
import { ago, fullTime, money, number } from '../../formats.ts'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { UsedBar } from '../../parts/small.tsx'
import { userText } from '../../parts/user-text.tsx'
import { hasPermission } from '../../session.ts'
import { RecordName } from '../record-name.tsx'

type Limit = TokenLimits['limits'][number]

export function Limits({ token: { id, version } }: { token: TokenRecord }) {
  const found = useLoaded(`limits of ${id} ${version}`, (signal) =>
    api('GET /v1/tokens/{id}/limits', { params: { id }, signal }),
  )
  return (
    <Show of={found} rows={2}>
      {({ limits }) =>
        limits.length === 0 ? (
          <p class="quiet">No limit applies to it.</p>
        ) : (
          <ul class="stack close" aria-label="Limits">
            {limits.map((limit) => (
              <li key={`${limit.kind} ${limit.id} ${limit.unit}`}>
                <LimitOf limit={limit} ofToken={id} />
              </li>
            ))}
          </ul>
        )
      }
    </Show>
  )
}

function LimitOf({ limit, ofToken }: { limit: Limit; ofToken: string }) {
  const { limit: most, used, window, per, resets_at: resets } = limit
  const title = <Title limit={limit} ofToken={ofToken} />
  if (window === 'minute') {
    return (
      <>
        {title}: {number(most)} {limit.unit} a minute
      </>
    )
  }
  const amount = (value: number) => (limit.unit === 'usd' ? money(value) : number(value))
  const what = limit.unit === 'usd' ? 'used' : 'requests'
  return (
    <>
      <div>{title}</div>
      {used === null ? (
        <span class="small quiet">
          {amount(most)}
          {per !== null && ` for each ${per.dimension}; the request says which`}
        </span>
      ) : (
        <UsedBar used={used} limit={most} text={`${amount(used)} of ${amount(most)} ${what}`} />
      )}
      {resets !== null && (
        <span class="small quiet">
          Resets {fullTime(resets)} ({ago(resets)})
        </span>
      )}
    </>
  )
}

/** What the limit is called and whose it is. */
function Title({
  limit: { kind, id, name, scope, per },
  ofToken,
}: {
  limit: Limit
  ofToken: string
}): ComponentChildren {
  if (kind === 'access_policy') {
    return (
      <>
        Access policy{' '}
        {hasPermission('catalog:read') ? <RecordName kind="access-policies" id={id} linked /> : userText(name ?? id)}
      </>
    )
  }
  if (kind === 'consumer_group') return <>Consumer group {userText(name ?? id)}</>
  if (kind !== 'budget') {
    const what = { max_budget: 'Budget', max_requests: 'Requests', rate_limit: 'Rate' }[kind]
    if (id === ofToken) return <>{what} of this token</>
    return (
      <>
        {what} of its source {userText(scope?.name ?? id)}
      </>
    )
  }
  const called = userText(name ?? id)
  return (
    <>
      Budget {hasPermission('catalog:read') ? <a href={href(`/budgets/${id}`)}>{called}</a> : called}
      {scope !== null && scope.kind !== 'token' && (
        <>
          {' '}
          of <Owner scope={scope} />
        </>
      )}
      {per !== null && ` for each ${per.dimension}`}
      {per !== null && per.value !== null && <>, here {userText(per.value)}</>}
    </>
  )
}

/** A person who may open the token may know what its team and its person are called. */
function Owner({ scope: { kind, id, name } }: { scope: NonNullable<Limit['scope']> }) {
  if (kind === 'organization') return <>the organization</>
  const what = kind === 'team' ? 'team' : 'person'
  if (!hasPermission('members:read')) {
    return (
      <>
        {what} {userText(name ?? id ?? '')}
      </>
    )
  }
  return (
    <>
      {what} <RecordName kind={kind === 'team' ? 'teams' : 'users'} id={id} linked />
    </>
  )
}

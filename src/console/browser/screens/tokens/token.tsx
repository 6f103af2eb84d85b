/** One token: what it may do, how much of its limits is used, and how it ends. */
import { useState } from 'preact/hooks'
import { href } from '../../address.ts'
import { api, type TokenRecord } from '../../api/routes.ts'
import { humanize, withTimes } from '../../formats.ts'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { Facts, Id, Time } from '../../parts/small.tsx'
import { caller, hasPermission } from '../../session.ts'
import { type NamedKind, RecordName } from '../record-name.tsx'
import { ChangeDialog } from './token-change.tsx'
import { CloneDialog } from './token-clone.tsx'
import { EmergencyDialog, RevokeDialog, RotateDialog } from './token-end.tsx'
import { Limits } from './token-limits.tsx'
import { TokenStatus } from './token-status.tsx'
import { TokenUsage } from './token-usage.tsx'

type Asked = 'change' | 'rotate' | 'clone' | 'revoke' | 'emergency' | null

export function TokenScreen({ id }: { id: string }) {
  const found = useLoaded(id, (signal) => api('GET /v1/tokens/{id}', { params: { id }, signal }))
  const [asked, setAsked] = useState<Asked>(null)
  const close = () => {
    setAsked(null)
    found.reload()
  }
  const token = found.value
  return (
    <>
      <PageHeader title={token?.name ?? 'Token'} back={['/tokens', 'Tokens']}>
        {token !== undefined && <Actions token={token} ask={setAsked} />}
      </PageHeader>
      <Show of={found} rows={8}>
        {(record) => (
          <div class="stack">
            <Record token={record} />
            {hasPermission('events:read') && record.purpose !== 'gateway_runtime' && <TokenUsage id={id} />}
          </div>
        )}
      </Show>
      {token !== undefined && asked === 'change' && <ChangeDialog token={token} close={close} />}
      {token !== undefined && asked === 'rotate' && <RotateDialog token={token} close={close} />}
      {token !== undefined && asked === 'clone' && <CloneDialog token={token} close={close} />}
      {token !== undefined && asked === 'revoke' && <RevokeDialog token={token} close={close} />}
      {token !== undefined && asked === 'emergency' && <EmergencyDialog token={token} close={close} />}
    </>
  )
}

function Actions({ token, ask }: { token: TokenRecord; ask(what: Asked): void }) {
  const active = token.status === 'active'
  const ended = token.status === 'revoked'
  // A new secret of an owner's token is given to owners only (tokens/creation/rules.ts).
  const mayRenew = !token.roles.includes('owner') || caller.value?.roles.includes('owner') === true
  return (
    <>
      {hasPermission('tokens:write') && mayRenew && active && (
        <>
          <button type="button" onClick={() => ask('change')}>
            Change
          </button>
          <button type="button" onClick={() => ask('clone')}>
            Clone
          </button>
          <button type="button" disabled={token.rotated_to_id !== null} onClick={() => ask('rotate')}>
            Rotate
          </button>
        </>
      )}
      {hasPermission('tokens:revoke') && !ended && (
        <>
          <button type="button" class="danger" onClick={() => ask('revoke')}>
            Revoke
          </button>
          <button type="button" class="danger" onClick={() => ask('emergency')}>
            Emergency revoke
          </button>
        </>
      )}
    </>
  )
}

/** Restrictions that stand among the limits, with what is used. */
const shownAsLimits: ReadonlySet<string> = new Set(['budget', 'requests', 'rate', 'budget_window'])

function Record({ token }: { token: TokenRecord }) {
  const { bindings, revocation } = token
  const restrictions = token.restrictions.filter(({ kind }) => !shownAsLimits.has(kind))
  return (
    <div class="cards">
      <section class="card stack">
        <div class="row between">
          <h2>Profile</h2>
          <TokenStatus token={token} />
        </div>
        {revocation !== null && (
          <p class="note danger">
            Revoked <Time at={revocation.at} />
            {revocation.explanation !== null && <>: {revocation.explanation}</>}
          </p>
        )}
        <Facts
          facts={[
            ['Prefix', <code key="prefix">{token.token_prefix}…</code>],
            ['Purpose', humanize(token.purpose)],
            ['Class', humanize(token.key_class)],
            ['Roles', token.roles.map(humanize).join(', ')],
            ['Team', <RecordName key="team" kind="teams" id={teamOf(token)} linked />],
            bindings.user_id === undefined
              ? null
              : ['Person', <RecordName key="user" kind="users" id={bindings.user_id} linked />],
            ['Created', <Time key="made" at={token.created_at} />],
            ['Last used', <Time key="used" at={token.last_used_at} about />],
            ['Expires', <Time key="expires" at={token.expires_at} />],
            ['Id', <Id key="id" id={token.id} />],
          ]}
        />
        <p>
          <a href={href('/traffic', { token_id: token.id })}>Its traffic</a>
        </p>
      </section>
      <section class="card stack">
        <h2>Limits</h2>
        <Limits token={token} />
        <h2>Restrictions</h2>
        {restrictions.length === 0 ? (
          <p class="quiet">None. It may use every model of every provider.</p>
        ) : (
          <ul class="stack close">
            {restrictions.map(({ kind, summary }) => (
              <li key={`${kind} ${summary}`}>
                <Restriction token={token} kind={kind} summary={summary} />
              </li>
            ))}
          </ul>
        )}
        {token.policies.length > 0 && (
          <p>
            Attached policies:{' '}
            {token.policies.map(({ id, name }, index) => (
              <span key={id}>
                {index > 0 && ', '}
                {hasPermission('policies:read') ? <a href={href(`/policies/${id}`)}>{name}</a> : name}
              </span>
            ))}
          </p>
        )}
        <Family token={token} />
      </section>
    </div>
  )
}

const teamOf = ({ bindings, owner }: TokenRecord): string | null =>
  bindings.team_id ?? (owner.kind === 'team' ? owner.id : null)

/** A restriction in the words of the API, with names where those have ids. */
function Restriction({ token, kind, summary }: { token: TokenRecord; kind: string; summary: string }) {
  const { gateway_id: gateway, team_id: team, user_id: user } = token.bindings
  const named: Readonly<Record<string, readonly [words: string, of: NamedKind, id: string | undefined]>> = {
    gateway: ['Only at the gateway', 'gateways', gateway],
    team: ['Belongs to the team', 'teams', team],
    user: ['Acts for', 'users', user],
  }
  if (kind === 'access_policies') {
    return (
      <>
        Access policies:{' '}
        {token.access_policy_ids.map((id, index) => (
          <>
            {index > 0 && ', '}
            <RecordName key={id} kind="access-policies" id={id} linked />
          </>
        ))}
      </>
    )
  }
  const [words, of, id] = named[kind] ?? []
  if (of === undefined) return <>{withTimes(summary)}</>
  return (
    <>
      {words} <RecordName kind={of} id={id} linked />
    </>
  )
}

function Family({ token: { rotated_from, rotated_to_id, source_token_id } }: { token: TokenRecord }) {
  const related = [
    ['Replaces', rotated_from],
    ['Replaced by', rotated_to_id],
    ['Cloned from', source_token_id],
  ] as const
  if (related.every(([, id]) => id === null)) return null
  return (
    <Facts
      facts={related.map(([name, id]) =>
        id === null ? null : [name, <RecordName key={id} kind="tokens" id={id} linked />],
      )}
    />
  )
}

import { useState } from 'preact/hooks'
import { hasQuery, href, queryValue } from '../../address.ts'
import { api, type TokenRecord } from '../../api/routes.ts'
import { countNoun, humanize, money, number } from '../../formats.ts'
import { Filters } from '../../parts/forms/filters.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { Icon } from '../../parts/icon.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { Command, Time, UsedBar } from '../../parts/small.tsx'
import { Empty, TableCard } from '../../parts/table.tsx'
import { hasPermission } from '../../session.ts'
import { tokenWords } from '../overview/standing.ts'
import { RecordName } from '../record-name.tsx'
import { teamFilter, useTeamOptions } from '../team-options.ts'
import { RevokeMany } from './revoke-many.tsx'
import { TokenStatus } from './token-status.tsx'

const statuses = ['active', 'revoked', 'expired', 'rotated', 'budget_exhausted', 'request_exhausted']
const filterNames = ['name', 'status', 'purpose', 'key_class', 'team_id']
const staleMilliseconds = 30 * 86_400_000

/** Every token, with what needs somebody's eye. */
export function Tokens() {
  const query = Object.fromEntries([...filterNames, 'cursor'].map((name) => [name, queryValue(name)]))
  const found = useLoaded(JSON.stringify(query), (signal) =>
    api('GET /v1/tokens', { query: { ...query, limit: 50 }, signal }),
  )
  const teams = useTeamOptions()
  /** Most names come with the filter: only those that it does not have are asked for one by one. */
  const areNamed = teams.value !== undefined || teams.refusal !== null
  const [chosen, setChosen] = useState<readonly string[]>([])
  const [revoking, setRevoking] = useState<readonly TokenRecord[] | null>(null)
  const picked = (found.value?.tokens ?? []).filter((token) => chosen.includes(token.id) && !isOver(token))
  return (
    <>
      <PageHeader title="Tokens">
        {picked.length > 0 && (
          <button type="button" class="danger" onClick={() => setRevoking(picked)}>
            Revoke {countNoun(picked.length, 'token')}
          </button>
        )}
        {hasPermission('tokens:write') && (
          <a class="button primary" href={href('/tokens/new')}>
            <Icon name="plus" />
            New token
          </a>
        )}
      </PageHeader>
      <Alerts />
      <Filters
        filters={[
          { name: 'name', label: 'Name' },
          { name: 'status', label: 'Status', options: statuses },
          { name: 'purpose', label: 'Purpose', options: ['general', 'gateway_runtime', 'integration'] },
          { name: 'key_class', label: 'Class', options: ['durable', 'virtual', 'disposable'] },
          teamFilter('team_id', teams.value),
        ]}
      />
      {[found, teams].map(
        ({ refusal, retry }, index) => refusal !== null && <ErrorNote key={index} refusal={refusal} retry={retry} />,
      )}
      <TableCard
        label="Tokens"
        rows={found.refusal !== null && found.value === undefined ? null : found.value?.tokens}
        next={found.value?.next_cursor}
        keyOf={({ id }) => id}
        linkOf={({ id }) => href(`/tokens/${id}`)}
        mutedWhen={(token) => isOver(token) || token.status === 'rotated' || token.status === 'expired'}
        choice={
          hasPermission('tokens:revoke')
            ? { chosen, set: setChosen, nameOf: ({ name }) => name, mayChoose: (token) => !isOver(token) }
            : undefined
        }
        columns={[
          { title: 'Name', cell: ({ name }) => name },
          { title: 'Status', cell: (token) => <TokenStatus token={token} />, nowrap: true },
          { title: 'Prefix', cell: ({ token_prefix }) => <code>{token_prefix}</code>, from: 'wide' },
          { title: 'Purpose', cell: ({ purpose }) => humanize(purpose), from: 'wider' },
          { title: 'Class', cell: ({ key_class }) => humanize(key_class), from: 'wider' },
          {
            title: 'Team',
            cell: ({ bindings, owner }) =>
              areNamed ? (
                <RecordName kind="teams" id={bindings.team_id ?? (owner.kind === 'team' ? owner.id : null)} />
              ) : (
                '…'
              ),
            from: 'wide',
          },
          { title: 'Limits', cell: (token) => <Limits token={token} />, from: 'wide' },
          { title: 'Last used', cell: (token) => <LastUsed token={token} />, nowrap: true },
        ]}
        empty={
          <Empty title={hasQuery(filterNames) ? 'No token matches these filters' : 'No token yet'}>
            <p>A token lets an application use the gateway.</p>
            {hasPermission('tokens:write') && (
              <>
                <p>Make one here, or on the command line:</p>
                <Command text="gatehouse token create --name shop --purpose general --expires-in 90d" />
              </>
            )}
          </Empty>
        }
      />
      {revoking !== null && (
        <RevokeMany
          tokens={revoking}
          close={() => {
            setRevoking(null)
            setChosen([])
            found.reload()
          }}
        />
      )}
    </>
  )
}

const isOver = ({ status }: TokenRecord): boolean => status === 'revoked'

function Limits({ token: { depletion: used, rate_limit_rpm: rpm } }: { token: TokenRecord }) {
  const { max_budget: budget, max_requests: requests } = used
  if (budget === null && requests === null)
    return <span class="quiet">{rpm === null ? 'None' : `${number(rpm)} a minute`}</span>
  return (
    <>
      {budget !== null && (
        <UsedBar
          used={used.current_spend ?? 0}
          limit={budget}
          text={`${money(used.current_spend ?? 0)} of ${money(budget)}`}
        />
      )}
      {requests !== null && (
        <UsedBar
          used={used.current_requests ?? 0}
          limit={requests}
          text={`${number(used.current_requests ?? 0)} of ${number(requests)} requests`}
        />
      )}
    </>
  )
}

function LastUsed({ token: { last_used_at: at, created_at: made, status } }: { token: TokenRecord }) {
  const since = Date.now() - Date.parse(at ?? made)
  const stale = status === 'active' && since > staleMilliseconds
  return (
    <span class="row">
      <Time at={at} about />
      {stale && <span class="tag">stale</span>}
    </span>
  )
}

/** The tokens that somebody must look at. */
function Alerts() {
  const found = useLoaded('alerts', (signal) => api('GET /v1/tokens/alerts', { query: {}, signal }))
  const alerts = found.value?.alerts ?? []
  if (found.refusal !== null) return <ErrorNote refusal={found.refusal} retry={found.retry} />
  if (alerts.length === 0) return null
  return (
    <section class="note warn stack close" aria-label="Alerts">
      <ul>
        {alerts.slice(0, 6).map(({ condition, token_id, name, at }) => (
          <li key={`${token_id} ${condition}`}>
            <a href={href(`/tokens/${token_id}`)}>{name}</a> {tokenWords[condition]}
            {at !== null && (
              <span class="quiet">
                {' '}
                (<Time at={at} />)
              </span>
            )}
          </li>
        ))}
      </ul>
      {alerts.length > 6 && <p class="small">And {number(alerts.length - 6)} more.</p>}
    </section>
  )
}

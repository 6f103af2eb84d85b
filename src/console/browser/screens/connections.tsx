/**
 * The person's own accounts at MCP servers. A link of an agent brings the name of one server: it is shown first, and
 * nothing happens before the person presses the button.
 */
import { useLayoutEffect, useState } from 'preact/hooks'
import type { RefusalReason } from '../../../members/identity-providers/provider-refusal.ts'
import { queryValue, setQuery } from '../address.ts'
import { api, type Connection } from '../api/routes.ts'
import { Confirm, useAction } from '../parts/frame/dialog.tsx'
import { PageHeader } from '../parts/frame/frame.tsx'
import { showToast } from '../parts/frame/toast.tsx'
import { Icon } from '../parts/icon.tsx'
import { ErrorNote, useLoaded } from '../parts/loaded.tsx'
import { Time } from '../parts/small.tsx'
import { Empty, TableCard } from '../parts/table.tsx'
import { showInvisible, UserText } from '../parts/user-text.tsx'
import { followRedirect } from './sign-in/follow-redirect.ts'

const reasons: Partial<Record<RefusalReason, string>> = {
  attempt_missing: 'This took too long, or began in another browser or as another person. Connect again.',
  provider_unreachable: 'The server, or where it lets people sign in, does not answer. Try again later.',
  provider_denied: 'The account was not connected: the other side did not agree.',
  provider_refused_client: 'The other side does not accept this installation. Tell an admin.',
  invalid_answer: 'The answer of the other side could not be trusted. Connect again, and tell an admin if it stays.',
}

const isReason = (text: string): text is RefusalReason => Object.hasOwn(reasons, text)

const isConnected = ({ status }: Connection): boolean => status === 'connected'

export function Connections() {
  const found = useLoaded('connections', (signal) => api('GET /v1/connections', { signal }))
  const [refused, setRefused] = useState<string | null>(null)
  const [ending, setEnding] = useState<Connection | null>(null)
  const reason = queryValue('refused')
  useLayoutEffect(() => {
    if (reason === null) return
    setRefused((isReason(reason) ? reasons[reason] : undefined) ?? 'The account was not connected. Try again.')
    setQuery({ refused: null }, { replace: true, keepPage: true })
  }, [reason])
  const wanted = queryValue('server')
  const connections = found.value?.connections.toSorted(
    (one, other) => Number(other.server === wanted) - Number(one.server === wanted),
  )
  const scope = queryValue('scope')
  // What a server lacks is asked for in addition, until the account has it.
  const needsMore = ({ scope: given }: Connection) =>
    scope?.split(' ').some((word) => given?.split(' ').includes(word) !== true) === true
  const asked = connections?.find(
    (connection) => connection.server === wanted && (!isConnected(connection) || needsMore(connection)),
  )
  return (
    <>
      <PageHeader title="Connections" />
      {refused !== null && (
        <p class="note warn" role="alert">
          {refused}
        </p>
      )}
      {asked !== undefined && (
        <section class="card stack">
          <h2>
            Connect <UserText>{asked.server}</UserText>
          </h2>
          <p>
            A program that works for you wants to use your account at <code>{new URL(asked.url).host}</code>. Connect it
            only if you started that program yourself. What it does there is done in your name, within the policies of
            this installation.
          </p>
          {scope !== null && (
            <p>
              It also asks for <code class="wrap">{showInvisible(scope)}</code>.
            </p>
          )}
          <div class="row">
            <Connect connection={asked} scope={scope} primary />
          </div>
        </section>
      )}
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
      <TableCard
        label="Your connections"
        rows={found.value === undefined && found.refusal !== null ? null : connections}
        keyOf={({ server_id: id }) => id}
        columns={[
          { title: 'Server', cell: ({ server }) => server },
          {
            title: 'State',
            nowrap: true,
            cell: (connection) => (
              <span class="badge" data-verdict={isConnected(connection) ? 'allow' : 'error'}>
                <Icon name={isConnected(connection) ? 'allow' : 'block'} />
                {isConnected(connection) ? 'Connected' : 'Not connected'}
              </span>
            ),
          },
          { title: 'Address', cell: ({ url }) => <code>{new URL(url).host}</code>, from: 'wide' },
          { title: 'It may', cell: ({ scope }) => (scope === null ? '–' : <code>{scope}</code>), from: 'wider' },
          { title: 'Connected', cell: ({ connected_at: at }) => <Time at={at} />, from: 'wide', nowrap: true },
          {
            title: 'Action',
            right: true,
            cell: (connection) =>
              isConnected(connection) ? (
                <button type="button" class="danger" onClick={() => setEnding(connection)}>
                  Disconnect
                </button>
              ) : connection === asked ? null : (
                <Connect connection={connection} />
              ),
          },
        ]}
        empty={
          <Empty title="Nothing to connect">
            <p>No MCP server of this installation is used with each person’s own account.</p>
          </Empty>
        }
      />
      {ending !== null && (
        <Confirm
          title="Disconnect your account"
          action="Disconnect"
          close={() => setEnding(null)}
          work={async () => {
            await api('DELETE /v1/connections/{id}', { params: { id: ending.server_id } })
            showToast('Your account is disconnected')
            found.reload()
          }}
        >
          <p>
            Programs that work for you can no longer use your account at <UserText>{ending.server}</UserText>. You can
            connect it again.
          </p>
        </Confirm>
      )}
    </>
  )
}

interface ConnectProps {
  connection: Connection
  /** What is asked for in addition. */
  scope?: string | null
  primary?: boolean
}

function Connect({ connection, scope = null, primary = false }: ConnectProps) {
  const { run, busy, refusal } = useAction(
    () =>
      api('POST /v1/connections/{id}/begin', {
        params: { id: connection.server_id },
        body: scope === null ? {} : { scope },
      }),
    ({ redirect_to }) => followRedirect(redirect_to),
  )
  return (
    <>
      {refusal !== null && <ErrorNote refusal={refusal} />}
      <button type="button" class={primary ? 'primary' : ''} disabled={busy} onClick={run}>
        <span>
          {isConnected(connection) ? 'Connect again' : 'Connect'} <UserText>{connection.server}</UserText>
        </span>
      </button>
    </>
  )
}

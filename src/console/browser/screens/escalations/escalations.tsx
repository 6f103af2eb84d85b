/**
 * The inbox of requests that wait for a person; j and k move, a and b decide, c takes one up.
 *
 * Only who reads it moves on to another request. One that leaves the list, because it was decided, claimed or too late,
 * stays beside it as what has become of it: a key that comes upon that acts on no other.
 */
import { useMemo, useRef, useState } from 'preact/hooks'
import { href, queryValue, setQuery } from '../../address.ts'
import { api, type Escalation } from '../../api/routes.ts'
import { ago, fullTime, humanize } from '../../formats.ts'
import { useAction } from '../../parts/dialog.tsx'
import { Filters } from '../../parts/filters.tsx'
import { countWaiting, PageHeader } from '../../parts/frame.tsx'
import { Icon, type IconName } from '../../parts/icon.tsx'
import { type Keys, useKeys } from '../../parts/keys.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { Command, Facts, Id, Time } from '../../parts/small.tsx'
import { Empty, TableCard } from '../../parts/table.tsx'
import { showToast } from '../../parts/toast.tsx'
import { hasPermission, isCaller } from '../../session.ts'
import { Decide, type Decision } from './decide.tsx'

const everyMs = 10_000

export function Escalations() {
  const status = queryValue('status') ?? 'queued'
  const query = { status: status === 'every' ? null : status, cursor: queryValue('cursor'), limit: 50 }
  const key = JSON.stringify(query)
  const load = async (signal: AbortSignal) => ({ key, ...(await api('GET /v1/escalations', { query, signal })) })
  const found = useLoaded(key, load, { everyMs })
  /** The request that was shown as its decision was begun: it stays the one, whatever comes to the list meanwhile. */
  const [deciding, setDeciding] = useState<{ escalation: Escalation; decision: Decision } | null>(null)
  const list = found.value?.escalations ?? []
  const { chosen, take: show } = useChosen(found.value?.key, list)
  // The list stands by the ids, the newest first: so there is a next one of what is in it no longer, too.
  const next = list.find(({ id }) => chosen === undefined || id < chosen.id)
  const previous = list.findLast(({ id }) => chosen === undefined || id > chosen.id)
  const move = (to: Escalation | undefined) => {
    if (to !== undefined) setQuery({ id: to.id }, { replace: true, keepPage: true })
  }
  /** What an action answered is shown at once, before the list says the same. */
  const changed = (escalation: Escalation) => {
    show(escalation)
    if (found.value !== undefined) {
      found.set({ ...found.value, escalations: list.map((one) => (one.id === escalation.id ? escalation : one)) })
    }
    found.reload()
    countWaiting()
  }
  const open = chosen !== undefined && isOpen(chosen) && hasPermission('escalations:resolve')
  const decide = (decision: Decision): void => {
    if (open) setDeciding({ escalation: chosen, decision })
  }
  const taking = chosen?.status !== 'claimed'
  const take = useAction(
    async () => {
      if (chosen === undefined) return
      const route = taking ? 'POST /v1/escalations/{id}/claim' : 'POST /v1/escalations/{id}/unclaim'
      return await api(route, { params: { id: chosen.id } })
    },
    (taken) => {
      if (taken === undefined) return
      showToast(taken.status === 'claimed' ? 'Claimed' : 'Returned to the queue')
      changed(taken)
    },
  )
  useKeys(
    useMemo(
      (): Keys => ({
        j: { does: 'Next', run: () => move(next) },
        k: { does: 'Previous', run: () => move(previous) },
        a: { does: 'Allow', run: () => decide('allow') },
        b: { does: 'Block', run: () => decide('block') },
        c: { does: 'Claim or release', run: () => open && take.run() },
      }),
      [chosen, open, list],
    ),
  )
  return (
    <>
      <PageHeader title="Escalations">
        <span class="small quiet keys">
          <kbd>j</kbd> <kbd>k</kbd> move · <kbd>a</kbd> allow · <kbd>b</kbd> block
        </span>
      </PageHeader>
      <Filters
        drops={['id']}
        filters={[
          {
            name: 'status',
            label: 'Status',
            usual: 'queued',
            options: ['queued', 'claimed', 'resolved', 'expired', ['every', 'Every']],
          },
        ]}
      />
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.reload} />}
      <div class="inbox">
        <TableCard
          label="Escalations"
          rows={found.value === undefined && found.refusal !== null ? null : found.value?.escalations}
          next={found.value?.next_cursor}
          keyOf={({ id }) => id}
          linkOf={({ id }) => href('/escalations', { id, status: queryValue('status'), cursor: queryValue('cursor') })}
          selected={chosen?.id ?? null}
          columns={[
            { title: 'Reason', cell: ({ reason_code }) => reason_code },
            { title: 'Token', cell: ({ token }) => token.name ?? token.id, from: 'wide' },
            { title: 'Status', cell: (one) => <State escalation={one} />, nowrap: true },
            { title: 'Waiting since', cell: ({ queued_at }) => <Time at={queued_at} />, nowrap: true },
          ]}
          empty={<NothingWaits title={status === 'queued' ? 'No request is waiting' : 'No requests'} />}
        />
        {chosen !== undefined && (
          <section class="card stack pane" aria-label="The request">
            <Request escalation={chosen} />
            {open && (
              <div class="row">
                <button type="button" class="primary" onClick={() => decide('allow')}>
                  Allow
                </button>
                <button type="button" class="danger" onClick={() => decide('block')}>
                  Block
                </button>
                <button type="button" disabled={take.busy} onClick={take.run}>
                  {taking ? 'Claim' : 'Release'}
                </button>
              </div>
            )}
            {!list.includes(chosen) && !open && list.length > 0 && (
              <div class="row">
                <button type="button" class="primary" onClick={() => move(next ?? list[0])}>
                  Next request
                </button>
              </div>
            )}
            {take.refusal !== null && <ErrorNote refusal={take.refusal} />}
          </section>
        )}
      </div>
      {deciding !== null && (
        <Decide
          {...deciding}
          close={() => setDeciding(null)}
          done={(decided) => {
            setDeciding(null)
            changed(decided)
          }}
        />
      )}
    </>
  )
}

/**
 * The request that is read: the one that the address names, or the first of the list when it came. `take` shows a newer
 * state of it.
 */
function useChosen(listKey: string | undefined, list: readonly Escalation[]) {
  /** What was shown last, and of which list: the newest comes first in it, but does not take the place of another. */
  const shown = useRef<{ listKey: string | undefined; escalation: Escalation } | null>(null)
  const last = shown.current?.listKey === listKey ? shown.current?.escalation : undefined
  const wanted = queryValue('id') ?? last?.id
  const listed = list.find(({ id }) => id === wanted)
  const missing = listKey !== undefined && listed === undefined ? wanted : undefined
  const apart = useLoaded(
    missing ?? '',
    async (signal) =>
      missing === undefined ? null : await api('GET /v1/escalations/{id}', { params: { id: missing }, signal }),
    { everyMs },
  )
  const known = [listed, apart.value ?? undefined, last].find((one) => one !== undefined && one.id === wanted)
  const onItsWay = missing !== undefined && apart.refusal === null
  const chosen = known ?? (onItsWay ? undefined : list[0])
  if (chosen !== undefined) shown.current = { listKey, escalation: chosen }
  return {
    chosen,
    take(escalation: Escalation) {
      if (shown.current?.escalation.id === escalation.id) shown.current = { listKey, escalation }
      if (apart.value?.id === escalation.id) apart.set(escalation)
    },
  }
}

const isOpen = ({ status }: Escalation): boolean => status === 'queued' || status === 'claimed'

const stateLooks: Readonly<Record<string, readonly [tone: string, icon: IconName]>> = {
  queued: ['escalate', 'escalate'],
  claimed: ['pending', 'people'],
  expired: ['error', 'pending'],
  allow: ['allow', 'allow'],
  block: ['block', 'block'],
}

function State({ escalation: { status, resolution } }: { escalation: Escalation }) {
  const word = resolution === null ? status : resolution
  const [tone, icon] = stateLooks[word] ?? ['error', 'error']
  return (
    <span class="badge" data-verdict={tone}>
      <Icon name={icon} />
      {resolution === 'allow' ? 'Allowed' : resolution === 'block' ? 'Blocked' : humanize(status)}
    </span>
  )
}

function Request({ escalation }: { escalation: Escalation }) {
  const { request, token, policy, attempts, grant, note, claimed_by } = escalation
  return (
    <>
      <div class="row between">
        <h2 class="wrap">{escalation.reason_code}</h2>
        <State escalation={escalation} />
      </div>
      <p>
        The policy <a href={href(`/policies/${policy.id}`)}>{policy.name ?? policy.id}</a> stopped a request of the
        token <a href={href(`/tokens/${token.id}`)}>{token.name ?? token.id}</a> {ago(escalation.queued_at)}
        {request.targets.length > 0 && <>, for {request.targets.join(', ')}</>}.
        {attempts > 1 && ` Sent ${attempts} times.`}
      </p>
      <Facts
        facts={[
          ['Route', request.route],
          ['Model', request.model ?? 'None'],
          request.request_id === null ? null : ['Request id', <Id key="request" id={request.request_id} />],
          ['Digest', <Id key="digest" id={request.digest} what="Digest" short />],
          isOpen(escalation) ? ['Expires', fullTime(escalation.expires_at)] : null,
          claimed_by === null
            ? null
            : ['Claimed by', isCaller(claimed_by) ? 'You' : <code key="claimed">{claimed_by}</code>],
          escalation.resolved_by === null
            ? null
            : [
                'Decided by',
                isCaller(escalation.resolved_by) ? 'You' : <code key="resolved">{escalation.resolved_by}</code>,
              ],
          escalation.resolved_at === null ? null : ['Decided', <Time key="at" at={escalation.resolved_at} />],
          note === null ? null : ['Note', note],
          grant === null ? null : ['Grant expires', fullTime(grant.expires_at)],
        ]}
      />
      <Captured text={capturedText(request)} />
    </>
  )
}

/** The text of the request where the gateway captures it, without personal data and secrets. */
const capturedText = (request: object): string | null =>
  'prompt_redacted' in request && typeof request.prompt_redacted === 'string' ? request.prompt_redacted : null

const Captured = ({ text }: { text: string | null }) => (
  <>
    {text !== null && <pre class="card">{text}</pre>}
    <p class="small quiet">
      {text === null
        ? 'The text of the request was not captured; the digest is the same for the same request.'
        : 'Personal data and secrets were removed before it was stored.'}{' '}
      A decision does not send the request.
    </p>
  </>
)

const NothingWaits = ({ title }: { title: string }) => (
  <Empty title={title}>
    <p>
      A request appears here when a policy of the kind escalate, or with the action escalate, stops it. For example:
    </p>
    <Command
      text={`policies:
  - name: transfers need a person
    kind: escalate
    stages: [pre_request]
    when: request.tools.exists(t, t == "transfer")
    config: { reason_code: finance.transfer }`}
      what="Policy"
    />
  </Empty>
)

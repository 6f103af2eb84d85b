/**
 * The inbox of requests that wait for a person; j and k move, a and b decide, u undoes, c takes one up.
 *
 * Only who reads it moves on to another request. One that leaves the list, because it was decided, claimed or too late,
 * stays beside it as what has become of it: a key that comes upon that acts on no other.
 */
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { reasonTitle } from '../../../../reason-words.ts'
import { href, queryValue, setQuery } from '../../address.ts'
import { api, type Escalation } from '../../api/routes.ts'
import { countNoun } from '../../formats.ts'
import { Filters } from '../../parts/forms/filters.tsx'
import { useAction } from '../../parts/frame/dialog.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { type Keys, useKeys } from '../../parts/frame/keys.tsx'
import { showToast } from '../../parts/frame/toast.tsx'
import { countWaiting } from '../../parts/frame/waiting.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { Command, Time } from '../../parts/small.tsx'
import { Empty, TableCard } from '../../parts/table.tsx'
import { userText } from '../../parts/user-text.tsx'
import { hasPermission } from '../../session.ts'
import { Decide, type Decision, type Draft, decideAll, emptyDraft, Undo, useUndo } from './decide.tsx'
import { type Group, grouped, isEqual, isOpen, mayDecide, mayRelease, undoable, whyNotDecided } from './queue.ts'
import { askedFor, Request, State, summaryOf } from './request.tsx'

const everyMs = 10_000
/** While a decision of the reader is about to take effect. */
const decidingMs = 2000

export function Escalations() {
  const status = queryValue('status') ?? 'open'
  const query = { status: status === 'every' ? null : status, cursor: queryValue('cursor'), limit: 50 }
  const key = JSON.stringify(query)
  const load = async (signal: AbortSignal) => ({ key, ...(await api('GET /v1/escalations', { query, signal })) })
  const [deciding, setDeciding] = useState(false)
  const mayResolve = hasPermission('escalations:resolve')
  const found = useLoaded(key, load, { everyMs: deciding ? decidingMs : everyMs })
  const list = found.value?.escalations ?? []
  const groups = grouped(list)
  const { chosen, take: show } = useChosen(found.value?.key, list)
  const [drafted, setDraft] = useState(emptyDraft(''))
  /** What was written for the decisions made here: one that is undone has it again. */
  const written = useRef(new Map<string, Draft>())
  const draft =
    drafted.id === chosen?.id ? drafted : (written.current.get(chosen?.id ?? '') ?? emptyDraft(chosen?.id ?? ''))
  const equal = equalTo(chosen, groups)
  // The list stands by the ids, the newest first: so there is a next one of what is in it no longer, too.
  const place = equal[0]?.id
  const next = groups.find(({ first }) => place === undefined || first.id < place)?.first
  const previous = groups.findLast(({ first }) => place === undefined || first.id > place)?.first
  const inbox = useRef<HTMLDivElement>(null)
  const pane = useRef<HTMLElement>(null)
  const move = (to: Escalation | undefined) => {
    if (to === undefined) return
    // A request that takes the place of the list is a step of its own: going back shows the list.
    const opens = pane.current?.offsetParent === null
    setQuery({ id: to.id }, { replace: !opens, keepPage: true })
  }
  /** What an action answered is shown at once, before the list says the same. */
  const changed = (escalations: readonly Escalation[]) => {
    for (const escalation of escalations) show(escalation)
    const newer = (one: Escalation) => escalations.find(({ id }) => id === one.id) ?? one
    if (found.value !== undefined) found.set({ ...found.value, escalations: list.map(newer) })
    found.reload()
    countWaiting()
  }
  const read = queryValue('id')
  const before = useRef(read)
  useLayoutEffect(() => {
    const changed = before.current !== read
    before.current = read
    // Where there is no room for both, the request takes the place of the list, and the focus goes along.
    if (!matchMedia('(max-width: 720px)').matches) return
    if (read !== null) scrollTo(0, 0)
    if (changed) placeFocus(inbox.current, read === null ? ['[aria-selected] a', 'tbody a'] : ['.pane h2'])
  }, [read])
  const decided = useRef<Decision>('allow')
  const decision = useAction(
    () => decideAll(equal.filter(mayDecide), decided.current, draft),
    (escalations) => {
      written.current.set(draft.id, draft)
      setDraft(emptyDraft(''))
      changed(escalations)
    },
  )
  const decide = (what: Decision): void => {
    if (chosen === undefined || !mayDecide(chosen)) return
    // Nobody decides about what they do not see: where there is room for the list alone, a key opens the request.
    if (pane.current?.offsetParent === null) {
      move(chosen)
      return
    }
    decided.current = what
    decision.run()
  }
  const own = undoable(chosen === undefined || list.includes(chosen) ? list : [chosen, ...list])
  if (own.length > 0 !== deciding) setDeciding(own.length > 0)
  const undo = useUndo(own, (escalation) => changed([escalation]))
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
      changed([taken])
    },
  )
  const mayTake = chosen !== undefined && (taking ? mayDecide(chosen) : mayRelease(chosen))
  useKeys(
    useMemo(
      (): Keys => ({
        j: { does: 'Next', run: () => move(next) },
        k: { does: 'Previous', run: () => move(previous) },
        ...(mayResolve && {
          a: { does: 'Allow', run: () => decide('allow') },
          b: { does: 'Block', run: () => decide('block') },
          n: { does: 'Write a note', run: () => pane.current?.querySelector('textarea')?.focus() },
          u: { does: 'Undo', run: () => own.length > 0 && undo.run() },
          c: { does: 'Claim or release', run: () => mayTake && take.run() },
        }),
      }),
      [chosen, list, draft],
    ),
  )
  const why = chosen === undefined ? null : whyNotDecided(chosen)
  const claim = mayTake && (
    <button type="button" disabled={take.busy} onClick={take.run}>
      {taking ? 'Claim' : 'Release'}
    </button>
  )
  return (
    <>
      <PageHeader title="Escalations">
        <span class="small quiet keys">
          <kbd>j</kbd> <kbd>k</kbd> move
          {mayResolve && (
            <>
              {' '}
              · <kbd>a</kbd> allow · <kbd>b</kbd> block · <kbd>n</kbd> note · <kbd>u</kbd> undo
            </>
          )}
        </span>
      </PageHeader>
      <Filters
        drops={['id']}
        filters={[
          {
            name: 'status',
            label: 'Status',
            usual: 'open',
            options: statusOptions,
          },
        ]}
      />
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
      {own.length > 0 && <Undo decisions={own} busy={undo.busy} undo={undo.run} />}
      {undo.refusal !== null && <ErrorNote refusal={undo.refusal} />}
      <div class={read === null ? 'inbox' : 'inbox opened'} ref={inbox}>
        <TableCard
          label="Escalations"
          rows={found.value === undefined && found.refusal !== null ? null : found.value && groups}
          next={found.value?.next_cursor}
          keyOf={({ first }) => first.id}
          linkOf={({ first: { id } }) =>
            href('/escalations', { id, status: queryValue('status'), cursor: queryValue('cursor') })
          }
          selected={equal[0]?.id ?? null}
          columns={[
            { title: 'Request', cell: Row },
            { title: 'Status', cell: ({ first }) => <State escalation={first} />, nowrap: true },
            { title: 'Waiting since', cell: ({ all }) => <Time at={all.at(-1)?.queued_at} />, nowrap: true },
          ]}
          empty={<NothingWaits title={hasWaited(status) ? 'No request is waiting' : 'No requests'} />}
        />
        {chosen !== undefined && (
          <section class="card stack pane" aria-label="The request" ref={pane}>
            <a
              class="to-list"
              href={href('/escalations', { status: queryValue('status'), cursor: queryValue('cursor') })}
            >
              All requests
            </a>
            <Request key={chosen.id} escalation={chosen} equal={equal} />
            {why === null && (
              <Decide
                key={`decide ${chosen.id}`}
                draft={draft}
                set={setDraft}
                about={equal.filter(mayDecide)}
                busy={decision.busy}
                decide={decide}
              >
                {claim}
              </Decide>
            )}
            {why !== null && isOpen(chosen) && <p class="quiet">{why}</p>}
            {why !== null && mayTake && <div class="row">{claim}</div>}
            {decision.refusal !== null && <ErrorNote refusal={decision.refusal} />}
            {!isOpen(chosen) && groups.some(({ first }) => isOpen(first)) && (
              <div class="row">
                <button type="button" class="primary" onClick={() => move(next ?? groups[0]?.first)}>
                  Next request
                </button>
              </div>
            )}
            {take.refusal !== null && <ErrorNote refusal={take.refusal} />}
          </section>
        )}
      </div>
    </>
  )
}

/** Focuses the first of these that is there. What had the focus is hidden: WCAG 2.4.3 (focus order). */
function placeFocus(inbox: HTMLElement | null, selectors: readonly string[]): void {
  const found = selectors.map((selector) => inbox?.querySelector<HTMLElement>(selector)).find((one) => one != null)
  found?.focus()
}

const statusOptions = [
  ['open', 'Open'],
  ['queued', 'Waiting'],
  ['claimed', 'Under review'],
  ['resolved', 'Decided'],
  'expired',
  ['every', 'Every'],
] as const

const hasWaited = (status: string): boolean => status === 'open' || status === 'queued'

/** The policy that stopped it; below, who asked and the text or arguments by which requests differ, what is asked for, how many ask it. */
const Row = ({ first, all }: Group) => (
  <>
    {userText(first.policy.name ?? reasonTitle(first.reason_code))}
    <div class="small quiet wrap">
      {userText(first.user_name ?? first.token.name ?? first.token.id)}: {userText(summaryOf(first))}
    </div>
    <div class="small quiet wrap">
      {userText(askedFor(first))}, <code>{userText(first.reason_code)}</code>
      {all.length > 1 && `, ${countNoun(all.length, 'equal request')}`}
    </div>
  </>
)

/** The requests that are equal to one, itself among them, the newest first. */
function equalTo(chosen: Escalation | undefined, groups: readonly Group[]): readonly Escalation[] {
  if (chosen === undefined) return []
  return (
    groups.find(({ first, all }) => isEqual(first, chosen) && all.some(({ id }) => id === chosen.id))?.all ?? [chosen]
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

const NothingWaits = ({ title }: { title: string }) => (
  <Empty title={title}>
    <p>
      A request appears here when a policy of the kind escalate, or with the action escalate, stops it.
      {hasPermission('policies:write') && ' For example:'}
    </p>
    {hasPermission('policies:write') && (
      <Command
        text={`policies:
  - name: transfers need a person
    kind: escalate
    stages: [pre_request]
    when: request.tools.exists(t, t == "transfer")
    config: { reason_code: finance.transfer, capture_escalated: true }`}
        what="Policy"
      />
    )}
  </Empty>
)

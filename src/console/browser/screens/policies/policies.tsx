/** The chain of policies in its order; a row is moved by dragging its handle, or by the arrow keys on it. */
import { Fragment } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { hasQuery, href, queryValue } from '../../address.ts'
import { everyPage } from '../../api/every-page.ts'
import type { Refusal } from '../../api/request.ts'
import { api, type PolicyActivity, type PolicyRecord } from '../../api/routes.ts'
import { families } from '../../families.ts'
import { humanize, milliseconds, number } from '../../formats.ts'
import { Filters } from '../../parts/forms/filters.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { showToast } from '../../parts/frame/toast.tsx'
import { Icon } from '../../parts/icon.tsx'
import { asRefusal, ErrorNote, Skeleton, useLoaded } from '../../parts/loaded.tsx'
import { Command } from '../../parts/small.tsx'
import { Empty } from '../../parts/table.tsx'
import { userText } from '../../parts/user-text.tsx'
import { hasPermission } from '../../session.ts'
import { RecordNames } from '../record-name.tsx'
import { teamFilter, useTeamOptions } from '../team-options.ts'
import { Bars, countedWords, foundIn, usePolicyActivity } from './activity.tsx'
import { stageLabel } from './stage-words.ts'

/** Every policy, in the order of the chain. */
export const readChain = (signal?: AbortSignal): Promise<PolicyRecord[]> =>
  everyPage(
    (query) => api('GET /v1/policies', { query, ...(signal === undefined ? {} : { signal }) }),
    ({ policies }) => policies,
  )

const isFor = (list: readonly string[] | undefined, wanted: string | null): boolean =>
  wanted === null || list === undefined || list.includes(wanted)

export function Policies() {
  const found = useLoaded('chain', readChain)
  const activity = usePolicyActivity()
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const teams = useTeamOptions()
  const [family, team] = [queryValue('family'), queryValue('team')]
  const all = found.value
  const shown = all?.filter(({ targets }) => isFor(targets.families, family) && isFor(targets.teams, team))
  const movable = hasPermission('policies:write') && shown !== undefined && shown.length === all?.length
  const sent = useRef<Promise<unknown>>(Promise.resolve())
  const move = async (from: number, to: number) => {
    if (all === undefined || to < 0 || to >= all.length || from === to) return
    const next = moveItem(all, from, to)
    found.set(next)
    // One after another: the order that was made last is to be the one that is kept.
    const before = sent.current
    const mine = before.then(() => api('PUT /v1/policies/order', { body: { policy_ids: next.map(({ id }) => id) } }))
    sent.current = mine
    try {
      await mine
      setRefusal(null)
      showToast(`${next[to]?.name ?? 'It'} is number ${to + 1} now`)
    } catch (error) {
      // Those behind it were made from an order that is not kept, and are not sent.
      setRefusal(asRefusal(error))
      if (sent.current === mine) sent.current = Promise.resolve()
      found.reload()
    }
  }
  return (
    <>
      <PageHeader title="Policies">
        {hasPermission('policies:write') && (
          <a class="button primary" href={href('/policies/new')}>
            <Icon name="plus" />
            New policy
          </a>
        )}
      </PageHeader>
      <p class="quiet">
        Every request goes through these in order. Block, deny and escalate end the chain; redact and rewrite pass on
        the changed text.
      </p>
      <Filters filters={[{ name: 'family', label: 'For', options: families }, teamFilter('team', teams.value)]} />
      {(found.refusal ?? refusal) !== null && (
        <ErrorNote refusal={found.refusal ?? asRefusal(refusal)} retry={found.retry} />
      )}
      <div class="card flush">
        {shown === undefined ? (
          found.refusal === null && <Skeleton rows={6} />
        ) : (
          <Chain chain={shown} move={movable ? move : null} activity={activity} />
        )}
      </div>
      {teams.refusal !== null && <ErrorNote refusal={teams.refusal} retry={teams.retry} />}
      {activity.refusal !== null && <ErrorNote refusal={activity.refusal} retry={activity.retry} />}
      {activity.value !== undefined && <p class="small quiet">{countedWords(activity.value)}</p>}
      {hasPermission('policies:write') && !movable && shown !== undefined && (
        <p class="small quiet">Clear the filters to change the order.</p>
      )}
    </>
  )
}

export function moveItem<Item>(list: readonly Item[], from: number, to: number): Item[] {
  const rest = list.filter((_item, index) => index !== from)
  const item = list[from]
  return item === undefined ? rest : [...rest.slice(0, to), item, ...rest.slice(to)]
}

type Move = (from: number, to: number) => Promise<void>

interface ChainProps {
  chain: readonly PolicyRecord[]
  move: Move | null
  activity: ReturnType<typeof usePolicyActivity>
}

function Chain({ chain, move, activity }: ChainProps) {
  const [dragged, setDragged] = useState<number | null>(null)
  if (chain.length === 0) return <NoPolicies />
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard (WCAG 2.1.1)
    <section class="table" aria-label="The chain" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col" class="narrow">
              Order
            </th>
            <th scope="col">Name</th>
            <th scope="col" class="wide">
              Kind
            </th>
            <th scope="col" class="wider">
              Stages
            </th>
            <th scope="col" class="wide">
              For
            </th>
            <th scope="col" class="right">
              Found
            </th>
            <th scope="col" class="right wide">
              Stopped
            </th>
            <th scope="col" class="right wider">
              Time each
            </th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {chain.map((policy, index) => (
            <tr
              key={policy.id}
              class={`${policy.enabled ? '' : 'muted'} ${dragged === index ? 'dragged' : ''}`}
              onDragOver={(event) => event.preventDefault()}
              onDrop={(event) => {
                event.preventDefault()
                if (dragged !== null && move !== null) void move(dragged, index)
                setDragged(null)
              }}
            >
              <td>
                {move === null ? (
                  <span class="number">{index + 1}</span>
                ) : (
                  <Handle index={index} name={policy.name} move={move} drag={setDragged} />
                )}
              </td>
              <td>
                <a class="main" href={href(`/policies/${policy.id}`)}>
                  {userText(policy.name)}
                </a>
              </td>
              <td class="wide">{humanize(policy.kind)}</td>
              <td class="wider">{policy.stages.map(stageLabel).join(', ')}</td>
              <td class="wide">{<Targets of={policy} />}</td>
              <ActivityCells activity={activity.value?.byId.get(policy.id)} known={activity.value !== undefined} />
              <td class="nowrap">
                <PolicyState policy={policy} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** Nothing is said until it is known. */
function ActivityCells({ activity, known }: { activity: PolicyActivity | undefined; known: boolean }) {
  const none = known ? '0' : '…'
  return (
    <>
      <td class="right">
        <span class="row tight end">
          {activity !== undefined && foundIn(activity) > 0 && <Bars activity={activity} />}
          <span class="count-of">{activity === undefined ? none : number(foundIn(activity))}</span>
        </span>
      </td>
      <td class="right wide">{activity === undefined ? none : number(activity.stopped)}</td>
      <td class="right wider">{activity === undefined ? '–' : milliseconds(activity.mean_ms)}</td>
    </>
  )
}

interface HandleProps {
  index: number
  name: string
  move: Move
  drag(index: number | null): void
}

const Handle = ({ index, name, move, drag }: HandleProps) => (
  <button
    type="button"
    class="plain handle"
    draggable
    aria-label={`${name}, number ${index + 1}: move with the arrow keys`}
    onDragStart={() => drag(index)}
    onDragEnd={() => drag(null)}
    onKeyDown={(event) => {
      const by = event.key === 'ArrowUp' ? -1 : event.key === 'ArrowDown' ? 1 : 0
      if (by === 0) return
      event.preventDefault()
      void move(index, index + by)
    }}
  >
    <Icon name="handle" />
    <span class="number">{index + 1}</span>
  </button>
)

function Targets({ of: { targets } }: { of: PolicyRecord }) {
  const { teams, gateways, tokens, models, families: of } = targets
  const parts = [
    of?.map(humanize).join(', '),
    models === undefined ? undefined : userText(models.join(', ')),
    teams === undefined ? undefined : <RecordNames kind="teams" ids={teams} />,
    tokens === undefined ? undefined : tokens.length === 0 ? 'tokens that name it' : `${tokens.length} tokens`,
    gateways === undefined ? undefined : `${gateways.length} gateways`,
  ].filter((part) => part !== undefined)
  if (parts.length === 0) return <>All</>
  return (
    <>
      {parts.map((part, index) => (
        <Fragment key={index}>
          {index > 0 && ' · '}
          {part}
        </Fragment>
      ))}
    </>
  )
}

export function PolicyState({ policy: { enabled, mode } }: { policy: Pick<PolicyRecord, 'enabled' | 'mode'> }) {
  const [tone, icon, label] = !enabled
    ? (['error', 'pause', 'Off'] as const)
    : mode === 'monitor'
      ? (['pending', 'search', 'Monitor'] as const)
      : (['allow', 'policies', 'Enforced'] as const)
  return (
    <span class="badge" data-verdict={tone}>
      <Icon name={icon} />
      {label}
    </span>
  )
}

const NoPolicies = () => (
  <Empty title={hasQuery(['family', 'team']) ? 'No policy matches these filters' : 'No policy yet'}>
    <p>Without a policy, requests and answers are not inspected. Create one here or from a file:</p>
    <Command text="gatehouse policy apply -f policies.yaml" />
  </Empty>
)

/** What alerts have found, the alerts themselves, and the channels that are told. */
import { href, queryValue } from '../../address.ts'
import { request } from '../../api/request.ts'
import type { Firing } from '../../api/routes.ts'
import { humanize, number, withTimes } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import { Filters } from '../../parts/forms/filters.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { Tabs } from '../../parts/frame/tabs.tsx'
import { Icon } from '../../parts/icon.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/small.tsx'
import { Empty, TableCard } from '../../parts/table.tsx'
import { showInvisible } from '../../parts/user-text.tsx'
import { type ListedRecord, type RecordKind, Records, text } from '../catalog/records.tsx'
import { type NamedKind, RecordName } from '../record-name.tsx'
import { AlertTest, ChannelTest } from './trials.tsx'

const tabs = [
  ['found', 'Fired'],
  ['alerts', 'Alerts'],
  ['channels', 'Channels'],
] as const

export function Alerts() {
  const shown = queryValue('kind') ?? 'found'
  const kind = kinds[shown]
  return (
    <>
      <PageHeader title="Alerts" />
      <Tabs label="Alerts and channels" path="/alerts" name="kind" tabs={tabs} shown={shown} />
      {kind === undefined ? <Found /> : <Records key={shown} kind={kind} />}
    </>
  )
}

const yes = (value: unknown): string => (value === true ? 'Yes' : 'No')

const alerts: RecordKind = {
  name: 'alerts',
  title: 'Alerts',
  one: 'alert',
  path: '/v1/alerts',
  write: 'catalog:write',
  nameOf: (record) => text(record, 'name'),
  deleting: 'What it has found stays in the history.',
  about: 'What is watched, and from where on it is told. An alert without channels of its own tells all of them.',
  command: "gatehouse alert create --name 'Checkout is refused' --condition refusals --scope team --scope-id TEAM",
  columns: [
    { title: 'Name', cell: (record) => text(record, 'name') },
    { title: 'Condition', cell: (record) => humanize(text(record, 'condition')) },
    { title: 'For', cell: ({ scope }) => <Scope scope={scope} />, from: 'wide' },
    { title: 'Thresholds', cell: (record) => thresholdsOf(record), from: 'wide' },
    { title: 'Severity', cell: (record) => humanize(text(record, 'severity')), from: 'wide' },
    { title: 'On', cell: ({ enabled }) => yes(enabled) },
    { title: 'Open', right: true, cell: ({ open }) => number(typeof open === 'number' ? open : 0) },
  ],
  action: (record) => <AlertTest alert={record} name={text(record, 'name')} />,
}

const channels: RecordKind = {
  name: 'channels',
  title: 'Channels',
  one: 'channel',
  path: '/v1/alert-channels',
  write: 'catalog:write',
  nameOf: (record) => text(record, 'name'),
  deleting: 'Notices that wait for it are dropped.',
  about: 'Where notices go. Addresses, keys and passwords are stored encrypted and never shown again.',
  command: "gatehouse alert-channel create --name 'On call' --kind slack --url-env SLACK_URL",
  columns: [
    { title: 'Name', cell: (record) => text(record, 'name') },
    { title: 'Kind', cell: (record) => humanize(text(record, 'kind')) },
    { title: 'Host', cell: (record) => text(record, 'host'), from: 'wide' },
    { title: 'State', cell: (record) => <ChannelState record={record} /> },
    {
      title: 'Waiting',
      right: true,
      cell: ({ waiting }) => number(typeof waiting === 'number' ? waiting : 0),
      from: 'wide',
    },
  ],
  action: (record, again) => <ChannelTest channel={record} name={text(record, 'name')} done={again} />,
}

const kinds: Readonly<Record<string, RecordKind>> = { alerts, channels }

const scopeKinds: Readonly<Record<string, NamedKind>> = {
  ...{ team: 'teams', gateway: 'gateways', token: 'tokens', budget: 'budgets' },
}

function Scope({ scope }: { scope: unknown }) {
  if (!isObject(scope) || scope.kind === 'organization') return <>Everything</>
  const kind = scopeKinds[String(scope.kind)]
  return (
    <>
      {humanize(String(scope.kind))}{' '}
      {kind === undefined ? showInvisible(String(scope.id)) : <RecordName kind={kind} id={String(scope.id)} />}
    </>
  )
}

const levels: readonly unknown[] = ['–', 'a warning', 'a failure']

/** `50, 80, 100 %`, `1 gateway process`, `a failure`. */
function thresholdsOf({ thresholds, unit, unit_of_one: one }: ListedRecord): string {
  const all: readonly unknown[] = Array.isArray(thresholds) ? thresholds : []
  if (unit === 'level') return all.map((level) => String(levels[Number(level)] ?? level)).join(', ')
  const isOne = all.length === 1 && all[0] === 1
  return `${all.join(', ')} ${String(isOne ? one : unit)}`
}

function ChannelState({ record: { enabled, state, failing_since, last_error } }: { record: ListedRecord }) {
  if (enabled !== true) return <>Off</>
  if (state !== 'failing') return <>{state === 'ok' ? 'Works' : 'Not used yet'}</>
  return (
    <span class="badge" data-verdict="deny" title={String(last_error)}>
      <Icon name="deny" />
      Fails since <Time at={String(failing_since)} />
    </span>
  )
}

export const severityVerdict = (severity: string): 'deny' | 'rate_limit' | 'allow' =>
  severity === 'critical' ? 'deny' : severity === 'warning' ? 'rate_limit' : 'allow'

function Found() {
  const [state, cursor] = [queryValue('state') ?? undefined, queryValue('cursor')]
  const found = useLoaded(
    `firings ${state ?? ''} ${cursor ?? ''}`,
    (signal) =>
      request<{ alert_firings: Firing[]; next_cursor: string | null }>('GET', '/v1/alert-firings', {
        query: { state, cursor, limit: 50 },
        signal,
      }),
    { everyMs: 15_000 },
  )
  return (
    <section class="stack">
      <Filters filters={[{ name: 'state', label: 'State', options: ['open', 'resolved'] }]} />
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
      <TableCard
        label="What alerts have found"
        rows={found.value === undefined && found.refusal !== null ? null : found.value?.alert_firings}
        next={found.value?.next_cursor}
        keyOf={({ id }) => id}
        mutedWhen={({ resolved_at }) => resolved_at !== null}
        columns={[
          {
            title: 'Severity',
            cell: ({ severity }) => (
              <span class="badge" data-verdict={severityVerdict(severity)}>
                {humanize(severity)}
              </span>
            ),
          },
          {
            title: 'Alert',
            cell: ({ alert, alert_deleted }) => nameOf(alert, alert_deleted, 'A deleted alert'),
            from: 'wide',
          },
          { title: 'About', cell: ({ about }) => showInvisible(withTimes(about)) },
          { title: 'Since', cell: ({ fired_at }) => <Time at={fired_at} />, nowrap: true },
          {
            title: 'Resolved',
            cell: ({ resolved_at }) => <Time at={resolved_at} none="Open" />,
            nowrap: true,
            from: 'wide',
          },
          { title: 'Notified', cell: ({ notices }) => toldTo(notices), from: 'wide' },
        ]}
        empty={
          <Empty title={state === undefined ? 'No alert has fired yet' : 'No alert is in this state'}>
            <p>
              Alerts look every few seconds. <a href={href('/alerts', { kind: 'channels' })}>Add a channel</a> to be
              told elsewhere too.
            </p>
          </Empty>
        }
      />
    </section>
  )
}

const nameOf = (name: string | null, isDeleted: boolean, otherwise: string): string =>
  name === null ? otherwise : isDeleted ? `${name} (deleted)` : name

const stateWords = { sent: '', pending: ' (waits)', failed: ' (failed)' } as const

/** Each channel once, with the last that happened to it. */
function toldTo(notices: Firing['notices']): string {
  const last = new Map(
    notices.map(({ channel, channel_deleted, state }) => [
      nameOf(channel, channel_deleted, 'a deleted channel'),
      stateWords[state],
    ]),
  )
  return last.size === 0 ? 'Here only' : [...last].map(([channel, word]) => `${channel}${word}`).join(', ')
}

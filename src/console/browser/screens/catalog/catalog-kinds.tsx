/** The kinds of records that the catalog has, each with its columns and what can be chosen in its form. */
import type { EffectivePrice } from '../../../../providers/catalog/model-resource.ts'
import { humanize, number, percent } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import { Id, Time } from '../../parts/small.tsx'
import type { Column } from '../../parts/table.tsx'
import { userText } from '../../parts/user-text.tsx'
import { budgetKind } from '../budgets/budget-kind.tsx'
import { RecordName } from '../record-name.tsx'
import { HeldOffers, HeldOffersButton } from './mcp-offers.tsx'
import { EffectivePrices, PriceLines } from './model-price.tsx'
import { PresetNote } from './preset-note.tsx'
import { ProviderTest, ProviderTestBeside } from './provider-test.tsx'
import { type ListedRecord, type RecordKind, text } from './records.tsx'
import { SinkState, SinkTest } from './sink-test.tsx'
import { spendOwners } from './spend-owners.ts'
import { HealthOfAll } from './target-health.tsx'

const list = (value: unknown): string => (Array.isArray(value) && value.length > 0 ? value.join(', ') : '–')
const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null)

const name: Column<ListedRecord> = { title: 'Name', cell: (record) => text(record, 'name') }
const made: Column<ListedRecord> = {
  title: 'Created',
  from: 'wider',
  nowrap: true,
  cell: ({ created_at }) => <Time at={typeof created_at === 'string' ? created_at : null} none="–" />,
}
const perMinute: readonly Column<ListedRecord>[] = [
  { title: 'Requests per minute', right: true, cell: (record) => number(numberOf(record.requests_per_minute)) },
  {
    title: 'Tokens per minute',
    right: true,
    cell: (record) => number(numberOf(record.tokens_per_minute)),
    from: 'wide',
  },
]

const called = (record: ListedRecord): string => text(record, 'name')

export const catalogKinds: readonly RecordKind[] = [
  {
    name: 'providers',
    title: 'Providers',
    one: 'provider',
    path: '/v1/catalog/providers',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'Its credentials are deleted, and its models can no longer be used.',
    about: 'Model providers, their addresses and credentials. A credential is stored encrypted and never shown again.',
    command: 'gatehouse provider create --preset openai --api-key-env OPENAI_KEY',
    columns: [
      name,
      { title: 'Kind', cell: (record) => humanize(text(record, 'kind')) },
      { title: 'Address', cell: (record) => text(record, 'base_url'), from: 'wide' },
      { title: 'Health', cell: (record) => <HealthOfAll of={{ provider: called(record) }} /> },
      {
        title: 'Credential',
        cell: ({ has_api_key }) => (has_api_key === true ? 'Stored, encrypted' : 'None'),
        from: 'wide',
      },
      {
        title: 'Unlisted models',
        cell: ({ allow_unlisted_models }) => (allow_unlisted_models === true ? 'Served' : 'No'),
        from: 'wider',
      },
      made,
    ],
    action: (record) => <ProviderTest provider={record} name={called(record)} />,
    beside: (record) => <ProviderTestBeside provider={record} />,
    note: ({ preset }) => <PresetNote name={preset} />,
  },
  {
    name: 'models',
    title: 'Models',
    one: 'model',
    path: '/v1/catalog/models',
    write: 'catalog:write',
    nameOf: ({ id }) => id,
    deleting: 'Requests for it are refused, or go to a provider that serves unlisted models.',
    first: 'id',
    about: 'Models with their provider, price and fallbacks.',
    command: 'gatehouse model create gpt-4o --provider openai --fallback spare/gpt',
    columns: [
      { title: 'Model', cell: ({ id }) => id },
      { title: 'Answered by', cell: (record) => <Targets record={record} />, from: 'wide', nowrap: true },
      { title: 'Health', cell: ({ id }) => <HealthOfAll of={{ model: id }} /> },
      {
        title: 'Price per million tokens, input / output',
        cell: ({ effective_prices }) => <PriceLines prices={pricesOf(effective_prices)} />,
        right: true,
      },
      { title: 'Fallbacks', cell: ({ fallbacks }) => list(fallbacks), from: 'wide' },
    ],
    beside: ({ effective_prices }) => <EffectivePrices prices={pricesOf(effective_prices)} />,
  },
  {
    name: 'mcp-servers',
    title: 'MCP servers',
    one: 'MCP server',
    path: '/v1/catalog/mcp-servers',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'Its secrets and approvals are deleted.',
    about:
      'Servers whose tools, prompts and resources callers use. What a server offers more than 10 seconds after its first listing is held until it is approved.',
    command: 'gatehouse mcp-server create --name search --url https://mcp.example.com/mcp --header-env X-Key=KEY',
    columns: [
      name,
      { title: 'Address', cell: (record) => reachOf(record), from: 'wide' },
      { title: 'Approval', cell: ({ approval }) => (approval === 'required' ? 'By a person' : 'On first use') },
      { title: 'In use', cell: ({ enabled, quarantined }) => serverUse(enabled === true, quarantined === true) },
      made,
    ],
    action: ({ id }) => <HeldOffersButton serverId={id} />,
    dialog: (again) => <HeldOffers again={again} />,
  },
  {
    name: 'sinks',
    title: 'Sinks',
    one: 'sink',
    path: '/v1/sinks',
    write: 'members:write',
    nameOf: called,
    deleting: 'Its credentials and its place in the record are deleted. What it was sent stays where it is.',
    about: 'Where copies of the record go: a SIEM, an archive, a stream or a table. Credentials are stored encrypted.',
    command: 'gatehouse sink create --name siem --kind http --url https://siem.example.com/in --token-env SIEM_TOKEN',
    columns: [
      name,
      { title: 'Kind', cell: (record) => text(record, 'kind') },
      { title: 'State', cell: (record) => <SinkState record={record} /> },
      { title: 'Records behind', cell: ({ lag_records }) => number(numberOf(lag_records)), right: true },
      {
        title: 'Behind',
        cell: ({ lag_records, lag_seconds }) =>
          numberOf(lag_records) === 0 ? '–' : seconds(numberOf(lag_seconds) ?? 0),
        right: true,
        from: 'wide',
      },
      { title: 'Delivered', cell: ({ delivered }) => number(numberOf(delivered)), right: true, from: 'wide' },
      { title: 'Refused', cell: ({ refused }) => number(numberOf(refused)), right: true, from: 'wider' },
      { title: 'Address', cell: (record) => text(record, 'url'), from: 'wider' },
    ],
    action: (record) => <SinkTest sink={record} name={called(record)} />,
  },
  {
    name: 'gateways',
    title: 'Gateways',
    one: 'gateway',
    path: '/v1/gateways',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'A gateway that uses this record stops serving.',
    about: 'The records of gateways. Create a runtime token for one on the command line.',
    command: 'gatehouse gateway create --name edge',
    choices: { spend_owner: async () => spendOwners },
    columns: [
      name,
      { title: 'Spend owner', cell: ({ spend_owner }) => <SpendOwner owner={spend_owner} /> },
      { title: 'Prompt caching', cell: ({ prompt_caching }) => (prompt_caching === true ? 'Yes' : 'No'), from: 'wide' },
      { title: 'Providers', cell: ({ providers: names }) => (names === null ? 'All' : list(names)), from: 'wide' },
      { title: 'Id', cell: ({ id }) => <Id id={id} short />, from: 'wider' },
    ],
  },
  {
    name: 'workload-identities',
    title: 'Workload identities',
    one: 'workload identity',
    path: '/v1/workload-identities',
    write: 'tokens:write',
    nameOf: called,
    deleting: 'Its callers are refused.',
    about: 'Callers that another issuer vouches for by a JWT: Kubernetes, a CI system or a cloud.',
    command:
      'gatehouse workload-identity create --name ci --issuer https://issuer.example.com --audience gatehouse --token-id TOKEN',
    columns: [
      name,
      { title: 'Issuer', cell: (record) => text(record, 'issuer') },
      { title: 'Audience', cell: (record) => text(record, 'audience'), from: 'wide' },
      { title: 'Condition', cell: (record) => text(record, 'condition'), from: 'wider' },
      { title: 'In use', cell: ({ enabled }) => (enabled === true ? 'Yes' : 'No') },
    ],
  },
  budgetKind,
  {
    name: 'consumer-groups',
    title: 'Consumer groups',
    one: 'consumer group',
    path: '/v1/consumer-groups',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'Its rates no longer apply to its members.',
    about: 'Teams, people and tokens that share a rate.',
    command: 'gatehouse consumer-group create --name batch --requests-per-minute 600 --team-id TEAM',
    columns: [
      name,
      ...perMinute,
      { title: 'For each', cell: ({ per }) => (typeof per === 'string' ? per : '–'), from: 'wider' },
      { title: 'Members', cell: ({ members }) => membersOf(members), right: true, from: 'wide' },
    ],
  },
  {
    name: 'access-policies',
    title: 'Access policies',
    one: 'access policy',
    path: '/v1/access-policies',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'It cannot be deleted while active tokens name it.',
    about: 'Models, providers and rates for the tokens that name one.',
    command: "gatehouse access-policy create --name small --model 'gpt-4o-mini*' --requests-per-minute 30",
    columns: [
      name,
      ...perMinute,
      {
        title: 'Of',
        cell: ({ scope }) => (scope === 'shared' ? 'all its tokens together' : 'each token'),
        from: 'wide',
      },
      { title: 'For each', cell: ({ per }) => (typeof per === 'string' ? per : '–'), from: 'wider' },
      { title: 'Models', cell: ({ models }) => list(models), from: 'wide' },
      { title: 'Providers', cell: ({ providers: names }) => list(names), from: 'wide' },
    ],
  },
  {
    name: 'dimensions',
    title: 'Dimensions',
    one: 'dimension',
    path: '/v1/attribution-dimensions',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'Events no longer say its value. It cannot be deleted while limits name it.',
    about: 'What spend is attributed to, such as customer or feature: for reports, charts and limits for each value.',
    command: 'gatehouse dimension create --name customer --source header --source-key x-customer-id',
    columns: [
      name,
      {
        title: 'From',
        cell: ({ source }) => (isObject(source) ? `${humanize(String(source.kind))} ${String(source.key)}` : '–'),
      },
      {
        title: 'Allowed values',
        cell: ({ values }) => (Array.isArray(values) ? list(values) : 'Every value'),
        from: 'wide',
      },
      { title: 'Most values', right: true, cell: (record) => number(numberOf(record.max_values)), from: 'wide' },
      { title: 'Required', cell: ({ required }) => (required === true ? 'Yes' : 'No'), from: 'wider' },
    ],
  },
]

function SpendOwner({ owner }: { owner: unknown }) {
  const [kind, id] = String(owner ?? '').split(':')
  if (id === undefined) return <>{kind === '' ? '–' : 'The organization'}</>
  return <RecordName kind={kind === 'team' ? 'teams' : 'users'} id={id} />
}

const serverUse = (enabled: boolean, quarantined: boolean): string =>
  quarantined ? 'Under quarantine' : enabled ? 'Yes' : 'No'

const reachOf = ({ url, command }: ListedRecord): string =>
  typeof url === 'string' ? url : isObject(command) ? String(command.program) : '–'

/** Each target of a model, as its provider and its name there; of several also how one is chosen. */
function Targets({ record: { id, targets, strategy } }: { record: ListedRecord }) {
  const all = Array.isArray(targets) ? targets.filter(isObject) : []
  const weights = all.reduce((sum, { weight }) => sum + (numberOf(weight) ?? 0), 0)
  return (
    <>
      {all.map(({ provider, upstream_model, weight, tier }) => {
        const name = String(upstream_model ?? id)
        return (
          <div class="row" key={`${provider} ${name} ${tier}`}>
            {userText(name.startsWith(`${provider}/`) ? name : `${provider}/${name}`)}
            {strategy === 'weighted' && all.length > 1 && (
              <span class="quiet">{percent((numberOf(weight) ?? 0) / Math.max(1, weights))}</span>
            )}
          </div>
        )
      })}
      {all.length > 1 && <span class="tag">{humanize(String(strategy))}</span>}
    </>
  )
}

/** The rows of a list have any members; these are the API's. */
const pricesOf = (prices: unknown): readonly EffectivePrice[] => (Array.isArray(prices) ? prices : [])

const membersOf = (members: unknown): number =>
  isObject(members)
    ? Object.values(members).reduce<number>((sum, part) => sum + (Array.isArray(part) ? part.length : 0), 0)
    : 0

/** A lag in the unit that fits it. */
function seconds(lag: number): string {
  if (lag < 120) return `${number(lag)} s`
  return lag < 7200 ? `${number(Math.floor(lag / 60))} min` : `${number(Math.floor(lag / 3600))} h`
}

/** The kinds of records that the catalog has, each with its columns and what can be chosen in its form. */
import { money, number, words } from '../../formats.ts'
import { isObject } from '../../parts/schema-form.tsx'
import { Id, Time, UsedBar } from '../../parts/small.tsx'
import type { Column } from '../../parts/table.tsx'
import { McpOffers } from './mcp-offers.tsx'
import { type Listed, type RecordKind, text } from './records.tsx'

const list = (value: unknown): string => (Array.isArray(value) && value.length > 0 ? value.join(', ') : '–')
const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null)

const name: Column<Listed> = { title: 'Name', cell: (record) => text(record, 'name') }
const made: Column<Listed> = {
  title: 'Made',
  from: 'wider',
  nowrap: true,
  cell: ({ created_at }) => <Time at={typeof created_at === 'string' ? created_at : null} none="–" />,
}
const perMinute: readonly Column<Listed>[] = [
  { title: 'Requests a minute', right: true, cell: (record) => number(numberOf(record.requests_per_minute)) },
  { title: 'Tokens a minute', right: true, cell: (record) => number(numberOf(record.tokens_per_minute)), from: 'wide' },
]

const called = (record: Listed): string => text(record, 'name')

export const catalogKinds: readonly RecordKind[] = [
  {
    name: 'providers',
    title: 'Providers',
    one: 'provider',
    path: '/v1/catalog/providers',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'Its credentials are forgotten, and models that name it can no longer be asked for.',
    about: 'Who answers, where, and by which credential. A credential goes in and never comes out.',
    command:
      'gatehouse provider create --name spare --kind openai --base-url https://llm.example.com/v1 --api-key-env KEY',
    columns: [
      name,
      { title: 'Kind', cell: (record) => words(text(record, 'kind')) },
      { title: 'Address', cell: (record) => text(record, 'base_url'), from: 'wide' },
      { title: 'Credential', cell: ({ has_api_key }) => (has_api_key === true ? 'Kept, sealed' : 'None') },
      {
        title: 'Unlisted models',
        cell: ({ allow_unlisted_models }) => (allow_unlisted_models === true ? 'Served' : 'No'),
        from: 'wider',
      },
      made,
    ],
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
    about: 'What can be asked for, who answers, at what price, and what is tried after.',
    command: 'gatehouse model create gpt-4o --provider openai --fallback spare/gpt',
    columns: [
      { title: 'Model', cell: ({ id }) => id },
      { title: 'Provider’s name for it', cell: (record) => text(record, 'upstream_model'), from: 'wide' },
      { title: 'Families', cell: ({ families }) => list(families), from: 'wider' },
      { title: 'Price', cell: ({ price }) => priceOf(price), right: true },
      { title: 'Fallbacks', cell: ({ fallbacks }) => list(fallbacks), from: 'wide' },
    ],
  },
  {
    name: 'mcp-servers',
    title: 'MCP servers',
    one: 'MCP server',
    path: '/v1/catalog/mcp-servers',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'Its secrets and what was approved of it are forgotten.',
    about:
      'Whose tools, prompts and resources callers reach. What it offers more than 10 seconds after it was first listed is held until it is approved.',
    command: 'gatehouse mcp-server create --name search --url https://mcp.example.com/mcp --header-env X-Key=KEY',
    columns: [
      name,
      { title: 'Reached by', cell: (record) => reachOf(record), from: 'wide' },
      { title: 'Approval', cell: ({ approval }) => (approval === 'required' ? 'By a person' : 'At first use') },
      { title: 'In use', cell: ({ enabled }) => (enabled === true ? 'Yes' : 'No') },
      made,
    ],
    action: (record) => <McpOffers server={record} name={called(record)} />,
  },
  {
    name: 'gateways',
    title: 'Gateways',
    one: 'gateway',
    path: '/v1/gateways',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'A gateway that runs under this record stops serving.',
    about: 'The records that gateways run under. A runtime token for one is made on the command line.',
    command: 'gatehouse gateway create --name edge',
    columns: [
      name,
      { title: 'Spend owner', cell: (record) => text(record, 'spend_owner') },
      { title: 'Prompt caching', cell: ({ prompt_caching }) => (prompt_caching === true ? 'Yes' : 'No'), from: 'wide' },
      { title: 'Providers', cell: ({ providers: names }) => (names === null ? 'All' : list(names)), from: 'wide' },
      { title: 'Id', cell: ({ id }) => <Id id={id} short />, from: 'wider' },
    ],
  },
  {
    name: 'budgets',
    title: 'Budgets',
    one: 'budget',
    path: '/v1/budgets',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'What it bounded is bounded no more.',
    about: 'What may be spent in a window, by the organization, a team, a person, or tokens that name it.',
    command: "gatehouse budget create --name 'the company' --max-budget 500 --window month",
    columns: [
      name,
      { title: 'Of', cell: ({ scope }) => (isObject(scope) ? words(String(scope.kind)) : '–') },
      { title: 'Window', cell: (record) => words(text(record, 'window')), from: 'wide' },
      { title: 'Used', cell: (record) => <BudgetUse record={record} /> },
    ],
  },
  {
    name: 'consumer-groups',
    title: 'Consumer groups',
    one: 'consumer group',
    path: '/v1/consumer-groups',
    write: 'catalog:write',
    nameOf: called,
    deleting: 'Its members are no longer held to its rates.',
    about: 'Teams, people and tokens that share a rate.',
    command: 'gatehouse consumer-group create --name batch --requests-per-minute 600 --team-id TEAM',
    columns: [
      name,
      ...perMinute,
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
    deleting: 'Tokens in force that name it stand in the way.',
    about: 'What tokens that name one may use, and how fast.',
    command: "gatehouse access-policy create --name small --model 'gpt-4o-mini*' --requests-per-minute 30",
    columns: [
      name,
      ...perMinute,
      {
        title: 'Of',
        cell: ({ scope }) => (scope === 'shared' ? 'all its tokens together' : 'each token'),
        from: 'wide',
      },
      { title: 'Models', cell: ({ models }) => list(models), from: 'wide' },
      { title: 'Providers', cell: ({ providers: names }) => list(names), from: 'wide' },
    ],
  },
]

const reachOf = ({ url, command }: Listed): string =>
  typeof url === 'string' ? url : isObject(command) ? String(command.program) : '–'

function priceOf(price: unknown): string {
  if (!isObject(price)) return 'From the table'
  return `${money(numberOf(price.input_per_million))} / ${money(numberOf(price.output_per_million))} a million`
}

const membersOf = (members: unknown): number =>
  isObject(members)
    ? Object.values(members).reduce<number>((sum, part) => sum + (Array.isArray(part) ? part.length : 0), 0)
    : 0

function BudgetUse({ record: { current_spend, max_budget } }: { record: Listed }) {
  const [spent, limit] = [numberOf(current_spend) ?? 0, numberOf(max_budget) ?? 0]
  return <UsedBar used={spent} limit={limit} text={`${money(spent)} of ${money(limit)}`} />
}

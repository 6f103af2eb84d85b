/**
 * Public MCP servers by name, one row each, as the documentation of each server says: where it is reached or how it is
 * started, and what it needs. `gatehouse mcp-server create --preset NAME` and the console's form follow from the table.
 * To add a server: its row here, and in the handbook's table.
 */
import { nearest } from '../../lib/text/nearest.ts'

/** A secret that a server needs; its name is that of the variable in the server's documentation. */
interface PresetSecret {
  readonly name: string
  /** What it is and where to get it. */
  readonly about: string
  readonly optional?: true
  /** For a server with a URL: the header that carries it, and what stands before it there. */
  readonly header?: { readonly name: string; readonly prefix: string }
}

export interface Preset {
  /** Also the name of the record where no other is given. */
  readonly name: string
  /** As people call it. */
  readonly title: string
  readonly url?: string
  readonly command?: { readonly program: string; readonly args: readonly string[] }
  readonly secrets: readonly PresetSecret[]
  /** What `preset_arguments` must say; absent: nothing has to be said. */
  readonly needs?: string
}

const bearer = { name: 'Authorization', prefix: 'Bearer ' }
const npx = (title: string, ...args: string[]) => ({ title, command: { program: 'npx', args: ['-y', ...args] } })
const uvx = (title: string, ...args: string[]) => ({ title, command: { program: 'uvx', args } })
const remote = (title: string, url: string, secret?: PresetSecret) => ({ title, url, secrets: secret ? [secret] : [] })

export const presets: readonly Preset[] = [
  {
    name: 'github',
    ...remote('GitHub', 'https://api.githubcopilot.com/mcp/', {
      name: 'GITHUB_PERSONAL_ACCESS_TOKEN',
      about: 'a personal access token of GitHub (github.com/settings/personal-access-tokens)',
      header: bearer,
    }),
  },
  {
    name: 'linear',
    ...remote('Linear', 'https://mcp.linear.app/mcp', {
      name: 'LINEAR_API_KEY',
      about: 'an API key of Linear (Settings, Security & access)',
      header: bearer,
    }),
  },
  {
    name: 'stripe',
    ...remote('Stripe', 'https://mcp.stripe.com', {
      name: 'STRIPE_API_KEY',
      about: 'a restricted API key of Stripe (dashboard.stripe.com/apikeys)',
      header: bearer,
    }),
  },
  {
    name: 'hugging-face',
    ...remote('Hugging Face', 'https://huggingface.co/mcp', {
      name: 'HF_TOKEN',
      about: 'an access token of Hugging Face (huggingface.co/settings/tokens)',
      header: bearer,
    }),
  },
  {
    name: 'context7',
    ...remote('Context7', 'https://mcp.context7.com/mcp', {
      ...{ name: 'CONTEXT7_API_KEY', about: 'an API key of Context7, for higher limits', optional: true },
      header: { name: 'CONTEXT7_API_KEY', prefix: '' },
    }),
  },
  { name: 'deepwiki', ...remote('DeepWiki', 'https://mcp.deepwiki.com/mcp') },
  { name: 'microsoft-learn', ...remote('Microsoft Learn', 'https://learn.microsoft.com/api/mcp') },
  {
    name: 'filesystem',
    ...npx('Files', '@modelcontextprotocol/server-filesystem'),
    secrets: [],
    needs: 'the directories that it may read and write',
  },
  {
    name: 'git',
    ...uvx('Git', 'mcp-server-git', '--repository'),
    secrets: [],
    needs: 'the directory of the repository',
  },
  { name: 'memory', ...npx('Knowledge graph', '@modelcontextprotocol/server-memory'), secrets: [] },
  { name: 'fetch', ...uvx('Web pages', 'mcp-server-fetch'), secrets: [] },
  { name: 'time', ...uvx('Time zones', 'mcp-server-time'), secrets: [] },
  {
    name: 'postgres',
    ...uvx('PostgreSQL, read only', 'postgres-mcp', '--access-mode=restricted'),
    secrets: [{ name: 'DATABASE_URI', about: 'the connection URI: postgresql://user:password@host:5432/database' }],
  },
  {
    name: 'mongodb',
    ...npx('MongoDB, read only', 'mongodb-mcp-server', '--readOnly'),
    secrets: [
      { name: 'MDB_MCP_CONNECTION_STRING', about: 'the connection string: mongodb+srv://user:password@host/database' },
    ],
  },
  {
    name: 'notion',
    ...npx('Notion', '@notionhq/notion-mcp-server'),
    secrets: [{ name: 'NOTION_TOKEN', about: 'the secret of an integration (notion.so/profile/integrations)' }],
  },
  {
    name: 'brave-search',
    ...npx('Brave Search', '@brave/brave-search-mcp-server'),
    secrets: [{ name: 'BRAVE_API_KEY', about: 'an API key of Brave Search (api-dashboard.search.brave.com)' }],
  },
  {
    name: 'sentry',
    ...npx('Sentry', '@sentry/mcp-server'),
    secrets: [{ name: 'SENTRY_ACCESS_TOKEN', about: 'a user auth token of Sentry' }],
  },
  {
    name: 'grafana',
    ...uvx('Grafana', 'mcp-grafana'),
    secrets: [
      { name: 'GRAFANA_URL', about: 'the address of Grafana' },
      { name: 'GRAFANA_SERVICE_ACCOUNT_TOKEN', about: 'a token of a service account of Grafana' },
    ],
  },
  { name: 'playwright', ...npx('Browser', '@playwright/mcp', '--headless'), secrets: [] },
]

export const presetNamed = (name: string): Preset | undefined => presets.find((preset) => preset.name === name)

export function unknownPreset(name: string): string {
  const names = presets.map((preset) => preset.name)
  const meant = nearest(name, names)
  const hint = meant === null ? '' : ` Did you mean ${meant}?`
  return `No preset has this name.${hint} The presets are ${names.join(', ')}. For another server write its url or command`
}

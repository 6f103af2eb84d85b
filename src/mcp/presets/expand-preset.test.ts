import { expect, test } from 'bun:test'
import { createMcpServerBody } from '../catalog/server-resource.ts'
import { checkAddress } from '../servers/server-address.ts'
import { expandPreset } from './expand-preset.ts'
import { presets, unknownPreset } from './presets.ts'

const expanded = (body: object) => expandPreset(createMcpServerBody.parse(body))
const secretsFor = (name: string) =>
  Object.fromEntries((presets.find((each) => each.name === name)?.secrets ?? []).map((secret) => [secret.name, 'key']))

test('each preset makes a record that the API takes, with its secrets where the server expects them', () => {
  for (const { name, url, command, needs, secrets } of presets) {
    const body = { preset: name, preset_secrets: secretsFor(name), ...(needs && { preset_arguments: ['/srv/data'] }) }
    const made = expanded(body)
    const { headers = {}, environment = {} } = made
    const credentials = { headers, environment, oauth: null }
    const reached = checkAddress(
      { plainHttp: 'loopback' },
      { url: made.url ?? null, command: made.command ?? null, credentials },
    )
    expect(made.name).toBe(name)
    expect([reached.url === null, reached.command === null]).toEqual([url === undefined, command === undefined])
    expect(Object.keys({ ...headers, ...environment })).toHaveLength(secrets.length)
  }
})

test('a secret becomes a header or a variable of the command', () => {
  expect(expanded({ preset: 'github', preset_secrets: { GITHUB_PERSONAL_ACCESS_TOKEN: 'ghp' } })).toMatchObject({
    name: 'github',
    url: 'https://api.githubcopilot.com/mcp/',
    headers: { Authorization: 'Bearer ghp' },
  })
  const database = { preset: 'postgres', name: 'orders', preset_secrets: { DATABASE_URI: 'postgresql://a' } }
  expect(expanded(database)).toMatchObject({
    name: 'orders',
    command: { program: 'uvx', args: ['postgres-mcp', '--access-mode=restricted'] },
    environment: { DATABASE_URI: 'postgresql://a' },
  })
  expect(expanded({ preset: 'filesystem', preset_arguments: ['/a', '/b'] }).command?.args.slice(-2)).toEqual([
    '/a',
    '/b',
  ])
  expect(expanded({ preset: 'context7' }).headers).toEqual({})
  expect(expanded({ preset: 'github', headers: { Authorization: 'Bearer own' } }).headers).toEqual({
    Authorization: 'Bearer own',
  })
})

test('names what a preset needs and what it has no use for', () => {
  const refusal = (body: object) => {
    try {
      return expanded(body)
    } catch (error) {
      return Object.assign({}, error)
    }
  }
  expect(refusal({ preset: 'github' })).toMatchObject({ param: 'preset_secrets.GITHUB_PERSONAL_ACCESS_TOKEN' })
  expect(refusal({ preset: 'filesystem' })).toMatchObject({ param: 'preset_arguments' })
  expect(refusal({ preset: 'deepwiki', preset_secrets: { KEY: 'a' } })).toMatchObject({ param: 'preset_secrets.KEY' })
  expect(refusal({ preset: 'deepwiki', preset_arguments: ['a'] })).toMatchObject({ param: 'preset_arguments' })
  expect(refusal({ preset: 'deepwiki', url: 'https://other.example.com' })).toMatchObject({ param: 'url' })
  expect(refusal({ url: 'https://other.example.com' })).toMatchObject({ param: 'name' })
  expect(unknownPreset('git-hub')).toContain('Did you mean github?')
})

test('stands in the handbook as it is in the table', async () => {
  const page = await Bun.file(new URL('../../handbook/mcp.md', import.meta.url)).text()
  const rows = presets.map(({ name, title, secrets, needs, url, command }) => {
    const asked = secrets.map((secret) => `\`${secret.name}\`${secret.optional ? ' (optional)' : ''}`)
    const what = [...asked, ...(needs === undefined ? [] : [needs])].join(', ')
    const reach = url ?? [command?.program, ...(command?.args ?? [])].join(' ')
    return `| \`${name}\` | ${title} | \`${reach}\` | ${what || 'nothing'} |`
  })
  expect(rows.filter((row) => !page.includes(`${row}\n`))).toEqual([])
})

import { describe, expect, test } from 'bun:test'
import { stringify as toToml } from '@decimalturn/toml-patch'
import {
  array,
  assert,
  constantFrom,
  dictionary,
  integer,
  jsonValue,
  property,
  record,
  string,
  tuple,
} from 'fast-check'
import { stringify as toYaml } from 'yaml'
import { changeText, readMembers } from './formats.ts'
import { changesBack, changesTo, type Wanted } from './members.ts'

/** What a file becomes when a recipe's text is merged into it, and when that is taken back. */
function merge(path: string, present: string, added: string, wanted: Partial<Wanted> = {}) {
  const members = readMembers(path, added)
  const none = { keeps: [], removes: [], stamps: [] }
  const { changes, undo } = changesTo(path, readMembers(path, present), { members, ...none, ...wanted })
  const after = changeText(path, present, changes, added)
  const back = (text = after) => {
    const { changes, frame } = changesBack(readMembers(path, text), undo)
    return changeText(path, text, [...changes, ...frame], null)
  }
  return { after, back }
}

describe('JSON', () => {
  const present = `{
    // mine
    "theme": "dark",
    "env": {
        "FOO": "1",
        "ANTHROPIC_AUTH_TOKEN": "old" // to be replaced
    },
}
`
  const added = '{"apiKeyHelper":"cat x","env":{"ANTHROPIC_BASE_URL":"http://g"}}'
  const removes = [['env', 'ANTHROPIC_AUTH_TOKEN']]

  test('keeps other members, comments and the indentation', () => {
    const { after } = merge('settings.json', present, added, { removes })
    expect(after).toContain('    // mine\n    "theme": "dark",\n')
    expect(after).toContain('        "FOO": "1",\n        "ANTHROPIC_BASE_URL": "http://g"')
    expect(after).not.toContain('"old"')
    expect(readMembers('settings.json', after)).toEqual({
      theme: 'dark',
      env: { FOO: '1', ANTHROPIC_BASE_URL: 'http://g' },
      apiKeyHelper: 'cat x',
    })
  })

  test('changes no line beside the new ones', () => {
    const own = '{\n\t"permissions": { "allow": ["Bash(ls)"] },\n\t"env": {\n\t\t"FOO": [1,2]\n\t}\n}\n'
    const { after, back } = merge('settings.json', own, added)
    expect(after).toBe(
      '{\n\t"permissions": { "allow": ["Bash(ls)"] },\n\t"env": {\n\t\t"FOO": [1,2],\n\t\t"ANTHROPIC_BASE_URL": "http://g"\n\t},\n\t"apiKeyHelper": "cat x"\n}\n',
    )
    expect(back()).toBe(own)
    const wide = merge('settings.json', '{\n  "a": 1\n}\n', added).after
    expect(wide).toBe(
      '{\n  "a": 1,\n  "apiKeyHelper": "cat x",\n  "env": {\n    "ANTHROPIC_BASE_URL": "http://g"\n  }\n}\n',
    )
    expect(merge('settings.json', '{}', added).after).toContain('\n  "apiKeyHelper": "cat x",\n')
    expect(merge('settings.json', '{\n}\n', added).after).toContain('\n  "apiKeyHelper": "cat x",\n')
  })

  test('takes back its own members and leaves what was written since', () => {
    const { after, back } = merge('settings.json', present, added, { removes })
    const since = after.replace('"dark"', '"light"').replace('"FOO": "1"', '"FOO": "2"')
    expect(readMembers('settings.json', back(since))).toEqual({
      theme: 'light',
      env: { FOO: '2', ANTHROPIC_AUTH_TOKEN: 'old' },
    })
  })

  test('removes an object that it made and that is empty afterwards', () => {
    const { back } = merge('settings.json', '{"a": 1}', added)
    expect(readMembers('settings.json', back())).toEqual({ a: 1 })
  })

  test('names the line of a fault and nothing of the content', () => {
    const broken = '{\n  "a": 1\n  "secret": "sk-1234567890"\n}'
    expect(() => readMembers('/x/settings.json', broken)).toThrow('/x/settings.json is not valid JSON (line 3)')
    expect(() => readMembers('/x/settings.json', broken)).not.toThrow('sk-1234')
    expect(() => readMembers('/x/settings.json', '[1]')).toThrow('holds no members at its top')
  })
})

describe('TOML', () => {
  const present = `# mine
model = "gpt-5" # the best
approval_policy = "never"

[model_providers.other] # kept
name = "Other"

[model_providers.gatehouse]
name = "by hand"
env_key = "MY_KEY"

[projects."/home/a/b c"]
trust_level = "trusted"
`
  const added = `model = "m"
model_provider = "gatehouse"

[model_providers.gatehouse]
name = "Gatehouse"

[model_providers.gatehouse.auth]
command = "cat"
args = ["/x y"]
`
  const removes = [['model_providers', 'gatehouse']]

  test('keeps comments and other tables, and writes new tables as they are printed', () => {
    const { after } = merge('config.toml', present, added, { removes })
    expect(after).toContain('# mine\nmodel = "m" # the best\napproval_policy = "never"\n')
    expect(after).toContain('[model_providers.other] # kept\nname = "Other"\n')
    expect(after).toEndWith(added.slice(added.indexOf('[model_providers.gatehouse]')))
    expect(after).not.toContain('MY_KEY')
    expect(Bun.TOML.parse(after)).toEqual({
      model: 'm',
      model_provider: 'gatehouse',
      approval_policy: 'never',
      model_providers: {
        other: { name: 'Other' },
        gatehouse: { name: 'Gatehouse', auth: { command: 'cat', args: ['/x y'] } },
      },
      projects: { '/home/a/b c': { trust_level: 'trusted' } },
    })
  })

  test('takes back its own members and leaves what the client wrote since', () => {
    const { after, back } = merge('config.toml', present, added, { removes })
    const since = `${after}\n[projects."/new"]\ntrust_level = "trusted"\n`
    expect(readMembers('config.toml', back(since))).toEqual({
      ...readMembers('config.toml', present),
      projects: { '/home/a/b c': { trust_level: 'trusted' }, '/new': { trust_level: 'trusted' } },
    })
  })

  test('refuses a file that is not valid', () => {
    expect(() => readMembers('/x/config.toml', 'model = \n')).toThrow('/x/config.toml is not valid TOML')
    expect(() => readMembers('/x/config.toml', 'a = 1\na = 2\n')).toThrow('is not valid TOML')
  })

  test('adds to a table that stands in one line', () => {
    const inline = 'model_providers = { other = { name = "Other" } }\n'
    const { after, back } = merge('config.toml', inline, added, { removes })
    expect(readMembers('config.toml', after)).toEqual({
      ...readMembers('config.toml', added),
      model_providers: {
        other: { name: 'Other' },
        gatehouse: { name: 'Gatehouse', auth: { command: 'cat', args: ['/x y'] } },
      },
    })
    expect(readMembers('config.toml', back())).toEqual(readMembers('config.toml', inline))
  })
})

describe('YAML', () => {
  const reference = `$\{{ secrets.GATEHOUSE_TOKEN }}`
  const present = `# top
name: Mine
version: 1.0.0
models:
  # local
  - name: llama
    model: llama3 # small
rules: [be nice, be brief]
`
  const added = `name: Gatehouse
schema: v1
models:
  - name: Gatehouse m
    model: m
    apiKey: ${reference}
`

  test('adds an entry to a list and keeps names, comments and the forms of lists', () => {
    const { after, back } = merge('config.yaml', present, added, { keeps: ['name', 'schema'] })
    expect(after).toBe(
      present.replace('rules:', `  - name: Gatehouse m\n    model: m\n    apiKey: ${reference}\nrules:`) +
        'schema: v1\n',
    )
    expect(back()).toBe(present)
  })

  test('replaces the entry of the same name instead of adding a second', () => {
    const { after } = merge('config.yaml', present, added, { keeps: ['name'] })
    const again = merge('config.yaml', after, added.replace('model: m', 'model: n'), { keeps: ['name'] })
    expect(readMembers('config.yaml', again.after).models).toEqual([
      { name: 'llama', model: 'llama3' },
      { name: 'Gatehouse m', model: 'n', apiKey: reference },
    ])
  })

  test('keeps the comment behind a value that changes', () => {
    const { after, back } = merge('x.yml', 'model: gpt-4o  # mine\n', 'model: "openai/m"\n')
    expect(after).toContain('# mine')
    expect(readMembers('x.yml', after)).toEqual({ model: 'openai/m' })
    expect(readMembers('x.yml', back())).toEqual({ model: 'gpt-4o' })
  })

  test('writes the text as it is printed where the file is empty, and keeps its comment where it has only one', () => {
    expect(merge('x.yml', '\n', 'a: "1"\n').after).toBe('a: "1"\n')
    expect(merge('x.yml', '# only this\n', 'a: "1"\n').after).toContain('only this')
  })

  test('names the line of a fault', () => {
    expect(() => readMembers('/x/config.yaml', 'a: 1\nb: [1\n')).toThrow(
      /\/x\/config.yaml is not valid YAML \(line \d\)/,
    )
    expect(() => readMembers('/x/config.yaml', 'just text')).toThrow('holds no members at its top')
  })
})

test('refuses a member of another kind than the wanted one, and names it', () => {
  const refused = (path: string, present: string, added: string) => () => merge(path, present, added)
  expect(refused('/x/a.json', '{"providers": 3}', '{"providers": {"g": {"a": 1}}}')).toThrow(
    '/x/a.json has a plain value as its member providers, where an object belongs, so it is not changed',
  )
  expect(refused('/x/a.json', '{"p": {"g": []}}', '{"p": {"g": {"a": 1}}}')).toThrow('has a list as its member p.g')
  expect(refused('/x/a.yaml', 'models: {a: 1}\n', 'models:\n  - name: m\n')).toThrow(
    '/x/a.yaml has an object as its member models, where a list belongs',
  )
  expect(refused('/x/a.toml', '[model]\na = 1\n', 'model = "m"\n')).toThrow('where a plain value belongs')
  expect(merge('/x/a.yaml', 'models:\n', 'models:\n  - name: m\n').after).toContain('- name: m')
})

test('keeps a byte order mark and reads past it', () => {
  for (const [path, present, added] of [
    ['a.json', '{"a": 1}', '{"b": 2}'],
    ['a.yaml', 'a: 1\n', 'b: 2\n'],
    ['a.toml', 'a = 1\n', 'b = 2\n'],
    ['a.env', 'a=1\n', 'b=2\n'],
  ] as const) {
    const { after, back } = merge(path, `\uFEFF${present}`, added)
    expect(after).toMatch(/^\uFEFF[^\uFEFF]*$/)
    expect(Object.keys(readMembers(path, after))).toEqual(['a', 'b'])
    expect(back()).toStartWith('\uFEFF')
    expect(Object.keys(readMembers(path, back()))).toEqual(['a'])
  }
  expect(merge('a.yaml', '\uFEFF', 'b: 2\n').after).toBe('\uFEFFb: 2\n')
})

test('moves a comment to the end where its member goes', () => {
  const json = merge('a.jsonc', '{\n  "a": 1\n}\n', '{"b": 2}')
  expect(json.back(json.after.replace('"b"', '// mine\n  "b"'))).toContain('// mine')
  const yaml = merge('a.yaml', 'a: 1\n', 'b: 2\n')
  expect(yaml.back('a: 1\n# mine\nb: 2 # so\n')).toBe('a: 1\n# mine\n# so\n')
  const toml = merge('a.toml', 'a = 1\n', 'b = 2\n\n[c]\nd = 1\n')
  expect(toml.back(toml.after.replace('b = 2', 'b = 2 # so').replace('[c]', '# mine\n[c]'))).toBe(
    'a = 1\n# so\n# mine\n',
  )
  const text = `x = "# \\" no" # yes\ny = '# no'\nz = """\n# no\n"""\n`
  expect(merge('a.toml', text, 'b = 2\n').after).toBe(`${text}b = 2\n`)
})

describe('.env', () => {
  const present = '# keys\nOTHER="a b"\nexport GEMINI_API_KEY=old\n'

  test('replaces a variable in its place, adds others, and keeps the rest', () => {
    const { after, back } = merge('.gemini/.env', present, 'GEMINI_API_KEY=new\nGEMINI_MODEL=m\n')
    expect(after).toBe('# keys\nOTHER="a b"\nGEMINI_API_KEY=new\nGEMINI_MODEL=m\n')
    expect(merge('.env', 'A=1\n\nB=2\n# c\n', 'B=3\n').after).toBe('A=1\n\nB=3\n# c\n')
    expect(readMembers('.env', back())).toEqual({ OTHER: 'a b', GEMINI_API_KEY: 'old' })
  })
})

test('any file has the same members again after a recipe was merged and taken back', () => {
  const names = constantFrom('a', 'name', 'x y', 'é', '"', '1')
  const value = jsonValue({ maxDepth: 2 }).filter((each) => each !== null)
  const own = { env: dictionary(constantFrom('Z', 'x y', '1'), value), models: array(value) }
  const members = tuple(dictionary(names, value), record(own, { requiredKeys: [] })).map(([some, others]) => ({
    ...some,
    ...others,
  }))
  const flat = dictionary(names, record({ a: integer(), 'b c': string(), d: array(integer()) }))
  const recipe = '{"name":"G","env":{"A":"1","B":{"C":[1]}},"models":[{"name":"m","model":"x"}],"new":{"d":{}}}'
  const unchanged = (path: string, text: string, added: string) => {
    const { after, back } = merge(path, text, added, { keeps: ['name'], removes: [['env', 'Z'], ['a']] })
    expect(readMembers(path, after)).toMatchObject({ new: { d: {} } })
    expect(readMembers(path, back())).toEqual(readMembers(path, text))
  }
  const runs = { numRuns: 15 }
  assert(
    property(members, (present) => unchanged('x.json', JSON.stringify(present, null, 2), recipe)),
    runs,
  )
  assert(
    property(members, (present) => unchanged('x.json', JSON.stringify(present), recipe)),
    runs,
  )
  assert(
    property(members, (present) => unchanged('x.yaml', toYaml(present), toYaml(JSON.parse(recipe)))),
    runs,
  )
  assert(
    property(flat, (present) => unchanged('x.toml', toToml(present), 'name = "G"\n\n[new.d]\n')),
    runs,
  )
}, 30_000)

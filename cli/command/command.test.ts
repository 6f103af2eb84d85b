import { expect, test } from 'bun:test'
import { defineCommand } from 'citty'
import { gatehouse, main } from '../main.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { runCommandLine, subCommandsOf } from './command.ts'

const accepted: unknown[] = []
const greet = defineCommand({
  meta: { description: 'Greet somebody' },
  args: {
    who: { type: 'positional', required: true, description: 'Whom' },
    'how-often': { type: 'string', alias: 'n', description: 'How often' },
    loud: { type: 'boolean', description: 'Loudly' },
    mood: { type: 'enum', options: ['glad', 'grave'], description: 'How' },
    word: { type: 'string', repeatable: true, description: 'A word to say' },
    secret: { type: 'string', hidden: true },
  },
  async run({ args }) {
    accepted.push({
      who: args.who,
      often: args['how-often'],
      loud: args.loud,
      mood: args.mood,
      word: args.word,
      secret: args.secret,
    })
  },
})
const root = defineCommand({ meta: { description: 'A test' }, subCommands: { greet: async () => greet } })

async function run(...rawArguments: string[]): Promise<unknown> {
  accepted.length = 0
  await runCommandLine(root, rawArguments, recordingTerminal())
  return accepted[0]
}

test('accepts an argument in all its spellings', async () => {
  const [often, loud, mood, word, secret] = [undefined, undefined, undefined, undefined, undefined]
  const ada = { who: 'Ada', often, loud, mood, word, secret }
  expect(await run('greet', 'Ada')).toEqual(ada)
  expect(await run('greet', '--how-often', '2', 'Ada', '--loud')).toEqual({ ...ada, often: '2', loud: true })
  expect(await run('greet', '--how-often=2', 'Ada', '--no-loud')).toEqual({ ...ada, often: '2', loud: false })
  expect(await run('greet', '-n', '2', '--', 'Ada')).toEqual({ ...ada, often: '2' })
  expect(await run('greet', 'Ada', '--secret', 's')).toEqual({ ...ada, secret: 's' })
  expect(await run('greet', 'Ada', '--mood', 'glad')).toEqual({ ...ada, mood: 'glad' })
  expect(await run('greet', '--word', 'one', 'Ada', '--word=--two')).toEqual({ ...ada, word: 'one\n--two' })
})

test.each([
  [['greet', 'Ada', '--how-oftn', '2'], 'Unknown option --how-oftn: did you mean --how-often?'],
  [['greet', 'Ada', '--how-oftn=sesame'], 'Unknown option --how-oftn'],
  [['greet', 'Ada', '-x'], 'Unknown option -x'],
  [['greet', 'Ada', 'Bob'], 'Too many arguments'],
  [['greet', 'Ada', '--', '--loud'], 'Too many arguments'],
  [['greet', 'Ada', '--how-often'], '--how-often needs a value'],
  [['greet', 'Ada', '--how-often='], '--how-often needs a value'],
  [['greet', 'Ada', '--how-often', '--loud'], '--how-often needs a value'],
  [['greet', 'Ada', '--how-often', '1', '--how-often', '2'], '--how-often is given twice'],
  [['greet', 'Ada', '--loud=yes'], '--loud takes no value'],
  [['greet', 'Ada', '--mood', 'sesame'], '--mood takes glad, grave'],
  [['greet'], 'Missing required positional argument: WHO'],
  [['greeet'], 'Unknown command "greeet" for gatehouse: did you mean greet?'],
  [['greet', '--hepl'], 'did you mean --help?'],
  [['toString'], 'Unknown command "toString"'],
  [['--loud=sesame'], 'Unknown option "--loud"'],
  [[], 'needs a command'],
])('%p is refused before any work is done', async (rawArguments, message) => {
  expect(run(...rawArguments)).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining(message) })
  expect(accepted).toEqual([])
})

test.each([
  [['--config', 'none.yaml', 'token', 'list']],
  [['token', '--config=none.yaml', 'list']],
  [['gateway', '--config', 'none.yaml', 'list']],
  [['gateway', '--config', 'none.yaml', '--log-level', 'info']],
  [['--profile', 'work', '--config', 'none.yaml', 'token', 'list']],
])('accepts connection flags before the command: %p', async (rawArguments) => {
  const terminal = recordingTerminal()
  expect(await main(rawArguments, terminal)).toBe(2)
  expect(terminal.noted()).toContain('none.yaml cannot be read')
})

test.each([
  [['--config', '--json', 'token', 'list'], '--config needs a value'],
  [['--config', 'a.yaml', 'token', 'list', '--config', 'b.yaml'], '--config is given twice'],
  [['--profile', 'work', 'version'], 'Unknown option --profile'],
  [['--json', 'token', 'list'], 'Unknown option "--json"'],
])('refuses a wrong flag before the command: %p', async (rawArguments, message) => {
  const terminal = recordingTerminal()
  expect(await main(rawArguments, terminal)).toBe(2)
  expect(terminal.noted()).toContain(message)
})

test('openapi takes --json like every command that reads', async () => {
  const terminal = recordingTerminal({ environment: { SERVICE_API_URL: 'http://127.0.0.1:1' } })
  expect(await main(['openapi', '--json'], terminal)).toBe(1)
  expect(terminal.noted()).toContain('could not be reached')
})

test('prints help to standard output, with the name the executable was called by and without hidden flags', async () => {
  const terminal = recordingTerminal({ name: 'gate' })
  await runCommandLine(root, ['greet', '--help'], terminal)
  expect(terminal.written()).toContain('gate greet')
  expect(terminal.written()).toContain('--how-often')
  expect(terminal.written()).not.toContain('secret')
  expect(terminal.written()).not.toContain('\u001b')
})

test.each([
  [['--api-token', 'gth_sesame']],
  [['--api-token=gth_sesame']],
  [['token', 'list', '--apiToken=gth_sesame']],
  [['nonsense', '--help', '--api-token=gth_sesame']],
])('refuses a token as a flag before anything else and does not repeat it: %p', async (rawArguments) => {
  const terminal = recordingTerminal()
  expect(await main(rawArguments, terminal)).toBe(2)
  expect(terminal.noted()).toContain('SERVICE_API_TOKEN')
  expect(terminal.noted() + terminal.written()).not.toContain('sesame')
})

test('every command has help', async () => {
  for (const path of [
    ['up'],
    ['control-plane'],
    ['gateway'],
    ['token', 'create'],
    ['events', 'tail'],
    ['config', 'explain'],
  ]) {
    const terminal = recordingTerminal()
    expect(await main([...path, '--help'], terminal)).toBe(0)
    expect(terminal.written()).toContain(`gatehouse ${path.join(' ')}`)
  }
})

test('a long option stands on a line of its own and pushes no other to the right', async () => {
  const terminal = recordingTerminal()
  const args = {
    mode: {
      type: 'enum',
      description: 'How it goes',
      options: Array.from({ length: 30 }, (_, index) => `mode-${index}`),
    },
    name: { type: 'string', description: 'Who it is' },
  } as const
  await runCommandLine(defineCommand({ meta: { name: 'gatehouse', description: 'It' }, args }), ['--help'], terminal)
  const lines = terminal.written().split('\n')
  expect(lines.find((line) => line.includes('--name'))).toBe('  --name=<name>    Who it is')
  const long = lines.findIndex((line) => line.startsWith('  --mode=<mode-0|mode-1|'))
  expect(lines[long]).toEndWith('|mode-29>')
  expect(lines[long + 1]).toBe('                   How it goes')
})

test('the help of up says how to stop it', async () => {
  const terminal = recordingTerminal()
  await main(['up', '--help'], terminal)
  expect(terminal.written()).toContain('Ctrl-C, or SIGTERM to this process, stops it')
})

test('the help of the executable has its commands in groups, each once', async () => {
  const terminal = recordingTerminal()
  await main(['--help'], terminal)
  const sections = terminal
    .written()
    .split(/^[A-Z][A-Z ]+$\n/m)
    .slice(1)
  expect(sections.length).toBeGreaterThan(5)
  const named = sections.flatMap((section) => [...section.matchAll(/^ +([\w-]+) {4}/gm)].map(([, name]) => name))
  const commands = (await subCommandsOf(gatehouse(terminal))).map(([name]) => name)
  expect(named.toSorted()).toEqual(commands.toSorted())
})

test('the help of up has the settings in groups', async () => {
  const terminal = recordingTerminal()
  await main(['up', '--help'], terminal)
  const [options = '', addresses = '', ...rest] = terminal
    .written()
    .split(/^[A-Z][A-Z ,-]+$\n/m)
    .slice(1)
  expect(options).toContain('--admin-token-file')
  expect(options).not.toContain('--gateway-listen')
  expect(addresses).toContain('--gateway-listen')
  expect(rest.some((group) => group.includes('--oauth-scopes') && !group.includes('--log-level'))).toBe(true)
  expect(terminal.written()).not.toContain('OTHER SETTINGS')
})

test('the help of an operator command has what says where the control plane is apart', async () => {
  const terminal = recordingTerminal()
  await main(['team', 'list', '--help'], terminal)
  const [, options, connection] = terminal.written().split(/^(?:OPTIONS|CONNECTION)$/m)
  expect(options).not.toContain('--api-url')
  expect(connection).toContain('--api-url')
})

test('a wrong use names the command whose help says how it is used', async () => {
  const terminal = recordingTerminal()
  expect(await main(['token', 'create', '--nme', 'x'], terminal)).toBe(2)
  expect(terminal.noted()).toContain('did you mean --name?')
  expect(terminal.noted()).toContain('gatehouse token create --help')
})

test.each([
  [['help', 'policies/pii'], 'Personal data: pii'],
  [['help', 'budgets'], 'Limits and budgets'],
  [['help', 'token', 'create'], 'gatehouse token create'],
  [['help', 'team'], 'Manage teams'],
])('%p shows a page or a command', async (rawArguments, text) => {
  const terminal = recordingTerminal()
  expect(await main(rawArguments, terminal)).toBe(0)
  expect(terminal.written()).toContain(text)
})

test.each([
  [['help', 'polices'], 'did you mean policies?'],
  [['help', 'token', 'creat'], 'did you mean create?'],
  [['help', 'zzz'], 'gatehouse help lists them'],
])('%p is no topic, and the nearest is suggested', async (rawArguments, message) => {
  const terminal = recordingTerminal()
  expect(await main(rawArguments, terminal)).toBe(2)
  expect(terminal.noted()).toContain(message)
})

test('version prints the version', async () => {
  const terminal = recordingTerminal()
  expect(await main(['version'], terminal)).toBe(0)
  expect(terminal.written()).toMatch(/^\d+\.\d+\.\d+\n$/)
})

test('config explain shows where each value comes from, and no secret', async () => {
  const environment = { SERVICE_DRAIN_SECONDS: '5', SERVICE_MASTER_KEY: 'sesame' }
  const terminal = recordingTerminal({ environment })
  expect(await main(['config', 'explain', '--json', '--data', '/srv/gate'], terminal)).toBe(0)
  expect(terminal.written()).not.toContain('sesame')
  expect(JSON.parse(terminal.written()).settings).toContainEqual({
    name: 'drain_seconds',
    value: 5,
    origin: 'environment',
    written: 'SERVICE_DRAIN_SECONDS',
    environment: 'SERVICE_DRAIN_SECONDS',
    flag: '--drain-seconds',
  })
})

/**
 * `completion bash|zsh|fish|powershell` prints a script for the shell to load; the script calls `completion complete`
 * at each key press, so that it stays correct when the executable is replaced.
 */
import { type ArgDef, defineCommand } from 'citty'
import type { Terminal } from '../terminal/terminal.ts'
import { type Command, descriptionOf, shownArguments, subCommandsOf, usualCommandOf } from './command.ts'

const shells = ['bash', 'zsh', 'fish', 'powershell'] as const
type Shell = (typeof shells)[number]

/** `root` returns the commands to complete. */
export const completion = (terminal: Terminal, root: () => Command) =>
  defineCommand({
    meta: { description: 'Print a script that completes commands and options in a shell' },
    subCommands: {
      ...Object.fromEntries(shells.map((shell) => [shell, async () => scriptFor(shell, terminal)])),
      complete: async () => complete(root),
    },
  })

const loading: Readonly<Record<Shell, (name: string) => string>> = {
  bash: (name) => `source <(${name} completion bash)`,
  zsh: (name) => `source <(${name} completion zsh)`,
  fish: (name) => `${name} completion fish | source`,
  powershell: (name) => `${name} completion powershell | Out-String | Invoke-Expression`,
}

const scriptFor = (shell: Shell, terminal: Terminal) =>
  defineCommand({
    meta: { description: `For ${shell}: ${loading[shell](terminal.name)}` },
    args: {},
    async run() {
      const text = await scriptText(shell, terminal.name)
      await terminal.write(shell === 'bash' ? withoutConstants(text) : text)
    },
  })

/** The library can only write the script with `console.log`. */
async function scriptText(shell: Shell, name: string): Promise<string> {
  const { script } = await import('@bomb.sh/tab')
  const { log } = console
  const lines: string[] = []
  console.log = (text: string) => void lines.push(text)
  try {
    script(shell, name, `${name} completion`)
  } finally {
    console.log = log
  }
  return `${lines.join('\n')}\n`
}

/**
 * Writes the values of a bash script's constants in place of their names: bash refuses a second `readonly` of one name,
 * by this script loaded twice or by another program's from the same library.
 */
function withoutConstants(script: string): string {
  const constants = [...script.matchAll(/^readonly (\w+)=(\d+)$/gm)]
  const bare = script.replaceAll(/^readonly \w+=\d+\n/gm, '')
  return constants.reduce((text, [, name, value]) => text.replaceAll(`$${name}`, value ?? ''), bare)
}

/** What the scripts ask. */
const complete = (root: () => Command) =>
  defineCommand({
    meta: { hidden: true, description: 'Complete the words after --' },
    args: { words: { type: 'positional', required: false, repeatable: true } },
    async run({ rawArgs }) {
      const { RootCommand } = await import('@bomb.sh/tab')
      const known = new RootCommand()
      await describe(known, root(), [])
      known.parse(rawArgs[0] === '--' ? rawArgs.slice(1) : rawArgs)
    },
  })

interface Known {
  command(path: string, about: string): { option: Option }
}
type Option = (name: string, about: string, values?: () => void) => unknown

async function describe(known: Known, group: Command, path: readonly string[]): Promise<void> {
  for (const [name, command] of await subCommandsOf(group)) {
    const here = [...path, name]
    const described = known.command(here.join(' '), await descriptionOf(command))
    await describe(known, command, here)
    for (const [flag, definition] of Object.entries(await shownArguments(await usualCommandOf(command)))) {
      describeFlag(described, flag, definition)
    }
  }
}

function describeFlag(described: { option: Option }, flag: string, definition: ArgDef): void {
  if (definition.type === 'positional') return
  const about = definition.description ?? ''
  if (definition.type === 'boolean') described.option(flag, about)
  // An option with a completer, even one that knows nothing, takes a value.
  else described.option(flag, about, () => undefined)
}

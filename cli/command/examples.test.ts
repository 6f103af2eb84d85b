import { expect, test } from 'bun:test'
import { parseArgs } from 'citty'
import { gatehouse } from '../main.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { argumentsOf, type Command, checkArguments, findCommand, helpOf, subCommandsOf } from './command.ts'
import { commandsWithExamples, examplesOf } from './examples.ts'

const root = gatehouse(recordingTerminal())

async function* commands(group: Command, path = ''): AsyncGenerator<[path: string, command: Command]> {
  const children = await subCommandsOf(group)
  if (children.length === 0) yield [path, group]
  for (const [name, child] of children) yield* commands(child, `${path} ${name}`.trim())
}

/** The words of an example, up to a redirection. */
const words = (line: string): string[] =>
  [...line.replace(/ ?[<>] .*$/, '').matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replaceAll(/^(['"])(.*)\1$/g, '$2'),
  )

async function faultOf(path: string, line: string): Promise<string | null> {
  try {
    const { command, path: found, rest } = await findCommand(root, words(line), 'gatehouse')
    if (found !== `gatehouse ${path}`) return `is ${found}`
    const args = await argumentsOf(command)
    // As citty does, which throws where a required argument is missing.
    parseArgs(checkArguments(rest, args), args)
    return null
  } catch (error) {
    return String(error)
  }
}

test('every command has examples, all of them valid, and its help shows them', async () => {
  const wrong: string[] = []
  const known = new Set<string>()
  for await (const [path, command] of commands(root)) {
    known.add(path)
    const examples = examplesOf(path)
    if (examples.length === 0) wrong.push(`${path}: no example`)
    const help = await helpOf(command, `gatehouse ${path}`, recordingTerminal())
    for (const example of examples) {
      const fault = await faultOf(path, example)
      if (fault !== null) wrong.push(`${example}: ${fault}`)
      if (!help.includes(`\n  gatehouse ${example}\n`)) wrong.push(`${example}: not in the help`)
    }
  }
  expect(commandsWithExamples.filter((path) => !known.has(path))).toEqual([])
  expect(wrong).toEqual([])
})

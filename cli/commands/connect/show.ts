/** How a setup is printed, and how changes of files are shown before they are made. */
import { createTwoFilesPatch } from 'diff'
import { type ClientSetup, type Recipe, setupBlocks } from '../../../src/clients/recipe.ts'
import { printable } from '../../terminal/table.ts'
import type { Step } from './client-files.ts'

/** What a client needs, as text that can be pasted; a comment says where each part goes. */
export function setupText({ title }: Recipe, setup: ClientSetup): string {
  const blocks = setupBlocks(setup).map(({ where, text }) => `# ${title}: ${where}\n${text}`)
  const steps = setup.steps.map((step) => `# - ${step}\n`).join('')
  return [...blocks, ...(steps === '' ? [] : [`# ${title}: What to do\n${steps}`])].join('\n')
}

/** Secrets of others in a file that changes: they are recognized by their form, or by the name before them. */
const secretForm = /\b(?:gth|sk|pk|rk|ghp|gho|xai|AIza)[-_]?[\w-]{12,}/g
const namedSecret = /((?:key|token|secret|password)["']?\s*[:=]\s*).+$/i

/** The lines of a file that change, without secrets. */
export function differenceText({ path, before, after }: Step): string {
  if (before === after) return `${path} stays as it is`
  const difference = createTwoFilesPatch(path, path, before ?? '', after ?? '', undefined, undefined, { context: 2 })
  const lines = difference.split('\n').filter((line) => !/^(?:=+$|Index: |---|\+\+\+|\\ No newline)/.test(line))
  const shown = lines.map((line) => {
    const bare = line.replaceAll(secretForm, '…')
    return printable(bare.replace(namedSecret, '$1…'))
  })
  const what = before === null ? ' (new)' : after === null ? ' (goes)' : ''
  return [`${path}${what}`, ...shown].join('\n').trimEnd()
}

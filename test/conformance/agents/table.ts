/** The matrix as a table: a row for each client, a column for each provider, and notes with numbers. */
import type { Cell } from './matrix.ts'

/** The simulator answers with text, whatever tools a client names. */
const textAlone = 'The simulator calls no tools; it answers with text.'

export function tableOf(cells: readonly Cell[]): string {
  const providers = [...new Set(cells.map(({ provider }) => provider))]
  const clients = [...new Set(cells.map(({ client }) => client))]
  const remarks: string[] = []
  const numberOf = (remark: string): number => {
    if (!remarks.includes(remark)) remarks.push(remark)
    return remarks.indexOf(remark) + 1
  }
  const shown = (client: string, provider: string): string => {
    const cell = cells.find((each) => each.client === client && each.provider === provider)
    if (cell === undefined) return '-'
    const numbers = remarksOf(cell)
      .map(numberOf)
      .toSorted((a, b) => a - b)
    return [cell.faults.length > 0 ? '✗' : '✓', numbers.join(', ')].filter((part) => part !== '').join(' ')
  }
  const rows = clients.map((client) => [client, ...providers.map((provider) => shown(client, provider))])
  const lines = [['', ...providers], providers.map(() => '---').concat('---'), ...rows]
  return [
    ...lines.map((line) => `| ${line.join(' | ')} |`),
    '',
    ...remarks.map((remark, at) => `${at + 1}. ${remark}`),
    '',
  ].join('\n')
}

function remarksOf({ faults, notes, provider }: Cell): string[] {
  if (faults.length > 0) return [...faults]
  if (provider.startsWith('simulator/')) return [textAlone]
  return notes.map(noteText)
}

/** `translation.left_out:tools.web_search` in words. */
function noteText(note: string): string {
  const [kind = '', member = ''] = note.split(':')
  if (kind === 'translation.left_out') return `\`${member}\` is left out.`
  return kind === 'translation.replaced' ? `\`${member}\` is replaced.` : `\`${note}\``
}

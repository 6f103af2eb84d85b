/** What the field of a member is called: the member's name as words, or better words where these say too little. */
import { humanize } from '../../formats.ts'

const better: Readonly<Record<string, string>> = {
  capture_escalated: 'Keep the text of requests that wait',
  per: 'For each',
}

export const fieldLabel = (name: string): string => better[name] ?? humanize(name)

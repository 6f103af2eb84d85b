/** The stages at which policies run, as people call them. */
import { humanize } from '../../formats.ts'

const words: Readonly<Record<string, readonly [label: string, hint: string]>> = {
  pre_request: ['The request', 'Before it is sent to a provider'],
  post_request: ['Provider answer', 'Before it is translated'],
  pre_response: ['Caller answer', 'What the caller gets, while it streams'],
}

export const stageLabel = (stage: string): string => words[stage]?.[0] ?? humanize(stage)

export const stageHint = (stage: string): string | undefined => words[stage]?.[1]

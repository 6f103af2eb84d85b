/** The channels of a chat stream: how they are called, and which names stand with a text. */
import type { FoundText } from '../reading/texts/texts.ts'
import type { Detail } from './reasoning-details.ts'
import type { Call } from './tool-calls.ts'

/** What a choice says: itself, one of its calls, or a detail of its reasoning. */
export interface Speaker {
  choice: number
  call: Call | null
  detail?: Detail
}

export function channelOf({ choice, call, detail }: Speaker, place: string): string {
  if (detail !== undefined) return `${choice}/${detail.place}/${place}`
  return call === null ? `${choice}/${textPlace(place)}` : `${choice}/${call.key}/${place}`
}

/** Content goes on from a string to parts of it and back: clients join them. */
const textPlace = (place: string): string => (place === 'content~text/text' ? 'content' : place)

const ofArguments = /(?:^|\/)(?:arguments|input)$/

/** Whether what a name names begins with this text: arguments may come later, or be none, where they are said to be ''. */
export const begins = ({ kind, text, place }: FoundText): boolean =>
  kind !== 'name' && (text !== '' || ofArguments.test(place))

/** The group of the names that stand with a text: of one tool, in `function`, as `function/name`. */
export const namesOf = ({ choice, call, detail }: Speaker, place: string): string =>
  `${choice}/${call?.key ?? detail?.place ?? ''}/${place.slice(0, Math.max(0, place.lastIndexOf('/')))}`

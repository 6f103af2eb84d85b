/** The channels of a chat stream: their names, and which tool names belong to a text. */
import type { FoundText } from '../reading/texts/texts.ts'
import type { Detail } from './reasoning-details.ts'
import type { Call } from './tool-calls.ts'

/** The owner of a text: the choice itself, one of its calls, or a detail of its reasoning. */
export interface Speaker {
  choice: number
  call: Call | null
  detail?: Detail
}

export function channelOf({ choice, call, detail }: Speaker, place: string): string {
  if (detail !== undefined) return `${choice}/${detail.place}/${place}`
  return call === null ? `${choice}/${textPlace(place)}` : `${choice}/${call.key}/${place}`
}

/** Content may change from a string to parts and back: clients join them. */
const textPlace = (place: string): string => (place === 'content~text/text' ? 'content' : place)

const ofArguments = /(?:^|\/)(?:arguments|input)$/

/** Whether this text starts the named call. Arguments may come later, or be empty if they are given as ''. */
export const begins = ({ kind, text, place }: FoundText): boolean =>
  kind !== 'name' && (text !== '' || ofArguments.test(place))

/** The group of the names that belong to a text: of one tool, in `function`, as `function/name`. */
export const namesOf = ({ choice, call, detail }: Speaker, place: string): string =>
  `${choice}/${call?.key ?? detail?.place ?? ''}/${place.slice(0, Math.max(0, place.lastIndexOf('/')))}`

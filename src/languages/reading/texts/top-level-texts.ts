/**
 * The texts of a whole answer beside the objects that its language lists (`choices`, `output`, `content`), such as
 * citations that some providers put there. What stands in place of the list, or of an object in it, is the answer's text
 * to those who read it all the same.
 */

import type { JsonObject } from '../json-value.ts'
import { outermost } from './text-paths.ts'
import type { TextSlot } from './text-slot.ts'
import { FoundSlot, type FoundText, textsIn } from './texts.ts'

/** All texts of a body but those of the objects in its list of this name; `except`: other members to leave out. */
export const topLevelTexts = (body: JsonObject, listed: string, except?: ReadonlySet<string>): TextSlot[] =>
  topLevelSlots(textsIn(body, { listed, ...(except !== undefined && { except }) }), listed)

/** These texts as slots: those of the list's member are the answer's, and of the others nobody knows whose they are. */
export const topLevelSlots = (texts: readonly FoundText[], listed: string): TextSlot[] =>
  texts.map((found) => {
    const member = outermost(found.place)
    return new FoundSlot(found, { member, role: member === listed ? 'assistant' : null })
  })

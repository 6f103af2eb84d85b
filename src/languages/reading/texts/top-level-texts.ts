/**
 * The texts of a whole answer beside the objects that its language lists (`choices`, `output`, `content`), such as
 * citations that some providers put there. A value in place of the list, or of an object in it, counts as the
 * answer's text, because some clients read it.
 */

import type { JsonObject } from '../json-value.ts'
import { outermost } from './text-paths.ts'
import type { TextSlot } from './text-slot.ts'
import { FoundSlot, type FoundText, textsIn } from './texts.ts'

/** All texts of a body except the objects in its list of this name; `except`: other members to leave out. */
export const topLevelTexts = (body: JsonObject, listed: string, except?: ReadonlySet<string>): TextSlot[] =>
  topLevelSlots(textsIn(body, { listed, ...(except !== undefined && { except }) }), listed)

/** These texts as slots: those in the list's member have the answer's role, the others have no known role. */
export const topLevelSlots = (texts: readonly FoundText[], listed: string): TextSlot[] =>
  texts.map((found) => {
    const member = outermost(found.place)
    return new FoundSlot(found, { member, role: member === listed ? 'assistant' : null })
  })

/** A text in a body or frame, as the walk over it finds it. */

/**
 * A text inside a parsed body, which a policy may read and replace. Replacing also takes out what repeats or vouches for
 * the text: log probabilities, the signature of signed thinking.
 */
export interface TextSlot {
  /** The outermost member it stands in: `messages`. Only members that were changed are written anew. */
  readonly member: string
  readonly kind: TextKind
  /** Whose words they are, where the dialect says: `system`, `user`, `assistant`, `tool`. */
  readonly role: string | null
  /** Tool arguments are JSON text, also where the body holds them as an object. */
  readonly text: string
  /** The message, or the result of a tool, that it is a part of, where that may have several: they are read as one, too. */
  readonly message?: object
  replace(text: string): void
}

/**
 * `tool_arguments` are JSON text (all others are plain): what replaces them must still parse. A `name` is that of a tool
 * that is called, of its server, or of who speaks.
 */
export type TextKind = 'content' | 'reasoning' | 'refusal' | 'tool_arguments' | 'tool_result' | 'name'

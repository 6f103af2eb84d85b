/** Texts that patterns read, for tests of what is told before a pattern reads them. */
import { contains } from '../regex/character-set.ts'
import type { PatternNode } from '../regex/pattern-syntax.ts'

export const characters = 'abcdefghijklmnopqrstuvwxyz0123456789 \n\t.\'"“[]()<>|/#=+$_-’ıİſKéß忽略지नигK🔓'

/** A text that a pattern reads, but for what its assertions ask; `choose` gives a number below its argument. */
export function textOf(node: PatternNode, choose: (count: number) => number): string {
  switch (node.type) {
    case 'assertion':
      return ''
    case 'sequence':
      return node.parts.map((part) => textOf(part, choose)).join('')
    case 'choice': {
      const option = node.options[choose(node.options.length)]
      return option === undefined ? '' : textOf(option, choose)
    }
    case 'repeat': {
      const count = node.least + choose(Math.min(node.most - node.least, 3) + 1)
      return Array.from({ length: count }, () => textOf(node.node, choose)).join('')
    }
    case 'set': {
      const ends = node.set.ranges.map((codePoint) => String.fromCodePoint(codePoint))
      const fitting = [
        ...ends,
        ...[...characters].filter((character) => contains(node.set, character.codePointAt(0) ?? 0)),
      ]
      return fitting[choose(fitting.length)] ?? ''
    }
  }
}

/** How the same may be written for patterns. */
export const disguises: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.toUpperCase(),
  (text) => text.replace(/[!-~]/g, (character) => String.fromCodePoint(character.charCodeAt(0) + 0xfee0)),
  (text) => text.replaceAll('e', 'e\u200b'),
  (text) => text.replaceAll('fi', '\ufb01').replaceAll('i', '\u0131'),
  (text) => [...text].join('\u00ad'),
]

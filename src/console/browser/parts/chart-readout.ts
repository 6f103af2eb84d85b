/** The values beneath the pointer, in a box beside it. Those who do not point read the legend. */
import type uPlot from 'uplot'
import { dateAndTime } from '../formats.ts'
import { showInvisible } from './user-text.tsx'

interface Line {
  name: string
  /** A CSS colour variable. */
  colour: string
  values: readonly (number | null)[]
}

interface Read {
  times: readonly number[]
  series: readonly Line[]
  /** Bars begin at their time; a point of a line is the one that is nearest. */
  stacked: boolean
  format(value: number): string
}

/** From the pointer, in pixels. */
const distance = 12

/** Makes the box in `place`, and gives what a plot does as its pointer moves. */
export function readoutIn(place: HTMLElement, { times, series, stacked, format }: Read): (plot: uPlot) => void {
  const box = document.createElement('div')
  box.className = 'readout'
  box.hidden = true
  place.append(box)
  return (plot) => {
    const { left = -1, idx } = plot.cursor
    const at = stacked ? times.findLastIndex((time) => time <= plot.posToVal(left, 'x')) : (idx ?? -1)
    const time = times[at]
    const lines = series.flatMap((one) => lineOf(one, at, stacked, format))
    box.hidden = left < 0 || time === undefined || lines.length === 0
    if (box.hidden || time === undefined) return
    box.replaceChildren(textOf('strong', dateAndTime(time * 1000)), ...lines)
    const pointer = plot.over.offsetLeft + left
    const isRight = left > plot.over.clientWidth / 2
    box.style.left = `${isRight ? pointer - distance - box.offsetWidth : pointer + distance}px`
  }
}

/** What stands on others is left out where it is nothing. */
function lineOf({ name, colour, values }: Line, at: number, stacked: boolean, format: Read['format']) {
  const value = values[at]
  if (value == null || (stacked && value === 0)) return []
  const swatch = document.createElement('i')
  swatch.className = 'swatch'
  swatch.style.setProperty('--tone', `var(${colour})`)
  const line = textOf('span', showInvisible(name))
  line.prepend(swatch)
  line.append(textOf('strong', format(value)))
  return [line]
}

function textOf(element: 'span' | 'strong', text: string): HTMLElement {
  const made = document.createElement(element)
  made.textContent = text
  return made
}

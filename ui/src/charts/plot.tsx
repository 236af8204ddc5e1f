import { useEffect, useRef, useState } from 'react'
import UPlot from 'uplot'
import { useShownTheme } from '../app/theme.ts'
import { PlotTooltip } from './plot-tooltip.tsx'
import { type ChartSeries, colorVariable, stack, withAlpha } from './series.ts'
import { tickLabel } from './time-labels.ts'
import './plot.css'

export type PlotProps = {
  /** Starts of the buckets: milliseconds since the epoch. */
  readonly times: readonly number[]
  readonly bucketMs: number
  readonly series: readonly ChartSeries[]
  readonly kind: 'bars' | 'lines'
  readonly height: number
  format(value: number): string
  /** A range selected with the pointer. */
  readonly onZoom: ((from: number, to: number) => void) | undefined
}

type Hover = { readonly index: number; readonly left: number }

/** The canvas of a time chart. Loaded with the library when a chart is displayed. */
export default function Plot({ times, bucketMs, series, kind, height, format, onZoom }: PlotProps) {
  const box = useRef<HTMLDivElement>(null)
  const [hover, setHover] = useState<Hover>()
  const theme = useShownTheme()
  const callbacks = useRef({ format, onZoom })
  callbacks.current = { format, onZoom }
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const options = optionsOf({ times, bucketMs, series, kind, height, element, theme })
    const plot = new UPlot(
      {
        ...options,
        axes: axesOf(element, (value) => callbacks.current.format(value)),
        hooks: {
          setCursor: [
            ({ cursor: { idx, left } }) =>
              setHover(
                idx === null || idx === undefined || left === undefined || left < 0
                  ? undefined
                  : { index: idx, left },
              ),
          ],
          setSelect: [
            (self) => {
              const { left, width } = self.select
              if (width < 4) return
              const [from, to] = [left, left + width].map((x) => Math.round(self.posToVal(x, 'x')))
              self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false)
              if (from !== undefined && to !== undefined) callbacks.current.onZoom?.(from, to)
            },
          ],
        },
      },
      dataOf({ times, series, kind }),
      element,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [times, bucketMs, series, kind, height, theme])
  return (
    <div className="relative" onPointerLeave={() => setHover(undefined)}>
      <div ref={box} aria-hidden />
      {hover && times[hover.index] !== undefined && (
        <PlotTooltip
          time={times[hover.index] ?? 0}
          index={hover.index}
          left={hover.left}
          width={box.current?.clientWidth ?? 0}
          bucketMs={bucketMs}
          series={series}
          format={format}
        />
      )}
    </div>
  )
}

type Drawn = Pick<PlotProps, 'times' | 'series' | 'kind'>

/** The parts of a stack are drawn from the highest to the lowest, each over the one before. */
function drawOrder(series: readonly ChartSeries[], kind: PlotProps['kind']): readonly number[] {
  const indexes = series.map((_, index) => index)
  if (kind === 'lines') return indexes
  const dashed = (index: number) => Number(series[index]?.dashed === true)
  return indexes.reverse().sort((one, other) => dashed(one) - dashed(other))
}

function dataOf({ times, series, kind }: Drawn): UPlot.AlignedData {
  const values = kind === 'bars' ? stack(series) : series.map((one) => [...one.values])
  return [[...times], ...drawOrder(series, kind).map((index) => values[index] ?? [])]
}

type OptionInputs = Omit<PlotProps, 'format' | 'onZoom'> & {
  readonly element: HTMLElement
  readonly theme: string
}

function optionsOf({ times, bucketMs, series, kind, height, element }: OptionInputs): UPlot.Options {
  const styles = getComputedStyle(element)
  const first = times[0] ?? 0
  const last = times.at(-1) ?? 0
  const { bars } = UPlot.paths
  const lines = series.filter(({ dashed }) => !dashed).length
  const drawn = drawOrder(series, kind).flatMap((index): UPlot.Series[] => {
    const one = series[index]
    if (one === undefined) return []
    const color = styles.getPropertyValue(colorVariable(one.color)).trim()
    if (one.dashed)
      return [{ label: one.label, stroke: color, width: 1.5, dash: [4, 4], points: { show: false } }]
    if (kind === 'bars' && bars)
      return [
        {
          label: one.label,
          fill: color,
          width: 0,
          paths: bars({ size: [0.78, 44], align: 1 }),
          points: { show: false },
        },
      ]
    return [
      {
        label: one.label,
        stroke: color,
        width: 1.75,
        ...(lines === 1 ? { fill: withAlpha(color, 0.1) } : {}),
        points: { show: times.length === 1, size: 5, fill: color },
        spanGaps: false,
      },
    ]
  })
  return {
    width: element.clientWidth,
    height,
    ms: 1,
    padding: [8, 22, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
    scales: {
      x: { time: true, range: [first, kind === 'bars' ? last + bucketMs : Math.max(last, first + 1)] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    series: [{}, ...drawn],
  }
}

function axesOf(element: HTMLElement, format: (value: number) => string): UPlot.Axis[] {
  const styles = getComputedStyle(element)
  const look = {
    stroke: styles.getPropertyValue('--ink-faint').trim(),
    font: `11px ${styles.fontFamily}`,
    ticks: { show: false },
  }
  const line = styles.getPropertyValue('--line').trim()
  return [
    {
      ...look,
      grid: { show: false },
      space: 72,
      size: 26,
      gap: 6,
      values: (_, splits, __, ___, step) => splits.map((time) => tickLabel(time, step)),
    },
    {
      ...look,
      grid: { stroke: line, width: 1 },
      size: 56,
      space: 40,
      values: (_, splits) => splits.map((value) => format(value)),
    },
  ]
}

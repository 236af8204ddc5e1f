import { classNames } from '../components/class-names.ts'
import { colorVariable, type SeriesColor } from './series.ts'

/** Colour of a series beside its name. */
export function Swatch({ color, dashed = false }: { color: SeriesColor; dashed?: boolean }) {
  return (
    <span
      aria-hidden
      className={classNames(
        'inline-block w-2.5 shrink-0',
        dashed ? 'h-0 border-t-2 border-dashed' : 'h-2.5 rounded-[3px]',
      )}
      style={
        dashed
          ? { borderColor: `var(${colorVariable(color)})` }
          : { background: `var(${colorVariable(color)})` }
      }
    />
  )
}

import { ChevronLeft, ChevronRight } from 'lucide-react'
import { formatNumber } from '../../format/number.ts'
import { Button } from '../action/button.tsx'

type PagerProps = {
  readonly shown: number
  readonly total?: number | undefined
  /** Undefined on the first page. */
  readonly onPrevious: (() => void) | undefined
  /** Undefined on the last page. */
  readonly onNext: (() => void) | undefined
}

/** Previous and next page of a list with cursors. */
export function Pager({ shown, total, onPrevious, onNext }: PagerProps) {
  if (!onPrevious && !onNext && total === undefined) return null
  return (
    <nav
      aria-label="Pages"
      className="flex items-center justify-between gap-3 border-t border-line px-5 py-2.5 text-xs text-ink-soft"
    >
      <span className="tabular" role="status">
        {total === undefined
          ? `${formatNumber(shown)} shown`
          : `${formatNumber(shown)} of ${formatNumber(total)}`}
      </span>
      <span className="flex gap-2">
        <Button size="small" icon={ChevronLeft} disabled={!onPrevious} onClick={onPrevious}>
          Previous
        </Button>
        <Button size="small" disabled={!onNext} onClick={onNext}>
          Next
          <ChevronRight className="size-4" aria-hidden />
        </Button>
      </span>
    </nav>
  )
}

import { classNames } from '../class-names.ts'

/** A place that is filled when its data arrives. */
export function Skeleton({ className }: { className?: string }) {
  return <div aria-hidden className={classNames('shimmer rounded-md', className ?? 'h-4 w-full')} />
}

/** Lines of a text or rows of a list that load. */
export function SkeletonLines({ count = 3 }: { count?: number }) {
  return (
    <div role="status" className="space-y-3" aria-label="Loading">
      {Array.from({ length: count }, (_, line) => (
        <Skeleton key={line} className={line % 3 === 2 ? 'h-4 w-2/3' : 'h-4 w-full'} />
      ))}
    </div>
  )
}

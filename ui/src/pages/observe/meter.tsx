import { classNames } from '../../components/class-names.ts'

/** Share of an amount that is used. `reserved` follows the used part. Shares above 1 fill the bar. */
export function Meter({
  label,
  used,
  reserved = 0,
  warnAt = 0.8,
}: {
  label: string
  used: number
  reserved?: number
  warnAt?: number
}) {
  const share = used + reserved
  const first = Math.min(1, Math.max(0, used))
  const second = Math.min(1 - first, Math.max(0, reserved))
  const fill = share >= 1 ? 'bg-bad' : share >= warnAt ? 'bg-warn' : 'bg-accent'
  return (
    // biome-ignore lint/a11y/useSemanticElements: a <meter> cannot have two parts
    <div
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(Math.min(1, share) * 100)}
      className="flex h-2 w-full min-w-16 overflow-hidden rounded-full bg-sunken ring-1 ring-line ring-inset"
    >
      <span className={fill} style={{ width: `${first * 100}%` }} />
      <span className={classNames(fill, 'opacity-45')} style={{ width: `${second * 100}%` }} />
    </div>
  )
}

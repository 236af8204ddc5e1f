/** The mark: a post with a raised barrier. */
export function BrandMark() {
  return (
    <svg aria-hidden="true" viewBox="0 0 32 32" className="size-7 shrink-0">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <path d="M8.5 25V13.5" stroke="var(--on-accent)" strokeWidth="3.2" strokeLinecap="round" />
      <path d="M8.5 13.5 25 7" stroke="var(--on-accent)" strokeWidth="3.2" strokeLinecap="round" />
      <path d="M5.5 25h6" stroke="var(--on-accent)" strokeWidth="3.2" strokeLinecap="round" />
    </svg>
  )
}

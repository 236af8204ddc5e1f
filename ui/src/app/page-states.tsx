import { MapPinOff } from 'lucide-react'
import { ButtonLink } from '../components/action/button.tsx'
import { EmptyState } from '../components/feedback/empty-state.tsx'
import { Skeleton } from '../components/feedback/skeleton.tsx'
import { Page } from '../components/layout/page.tsx'

/** Displayed while the code of a page loads. */
export function LoadingPage() {
  return (
    <div
      role="status"
      aria-label="Loading"
      className="mx-auto w-full max-w-[100rem] space-y-6 px-4 py-6 sm:px-6 lg:px-8"
    >
      <Skeleton className="h-7 w-48" />
      <Skeleton className="h-40 w-full rounded-xl" />
      <Skeleton className="h-64 w-full rounded-xl" />
    </div>
  )
}

/** The page of an address that has none. */
export function MissingPage() {
  return (
    <Page title="Page not found">
      <EmptyState
        icon={MapPinOff}
        title="No page has this address"
        action={<ButtonLink href="/">Open the overview</ButtonLink>}
      >
        The link may be from another version of the console.
      </EmptyState>
    </Page>
  )
}

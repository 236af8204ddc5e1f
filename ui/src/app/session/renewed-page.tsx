import { CircleCheck } from 'lucide-react'
import { useEffect } from 'react'
import { EmptyState } from '../../components/feedback/empty-state.tsx'
import { announceLogin } from './session.ts'

/** End of a login in a window of its own: reports it to the page that waits, and closes. */
export function RenewedPage() {
  useEffect(() => {
    document.title = 'Logged in'
    announceLogin()
    window.close()
  }, [])
  return (
    <main className="grid min-h-dvh place-items-center p-6">
      <h1 className="sr-only">Logged in</h1>
      <EmptyState icon={CircleCheck} title="You are logged in">
        Close this window and continue in the console.
      </EmptyState>
    </main>
  )
}

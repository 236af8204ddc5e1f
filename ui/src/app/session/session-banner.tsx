import { LogIn } from 'lucide-react'
import { Button } from '../../components/action/button.tsx'
import { Notice } from '../../components/feedback/notice.tsx'
import { askForLogin, useSessionState } from './session.ts'

/** Reminder above the page after the user has postponed the login. */
export function SessionBanner() {
  if (useSessionState() !== 'postponed') return null
  return (
    <div className="px-4 pt-4 sm:px-6 lg:px-8">
      <Notice
        tone="warn"
        title="Your session has ended"
        action={
          <Button size="small" icon={LogIn} onClick={askForLogin}>
            Log in
          </Button>
        }
      >
        The content of this page may be out of date, and nothing can be saved.
      </Notice>
    </div>
  )
}

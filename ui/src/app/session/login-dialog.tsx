import { useQueryClient } from '@tanstack/react-query'
import { LogIn } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { api, setUnauthorizedListener } from '../../api/client.ts'
import type { Whoami } from '../../api/whoami.ts'
import { Button } from '../../components/action/button.tsx'
import { Notice } from '../../components/feedback/notice.tsx'
import { toast } from '../../components/feedback/toasts.tsx'
import { Dialog } from '../../components/layout/dialog.tsx'
import {
  onPossibleLogin,
  postponeLogin,
  renewedPath,
  resumeCalls,
  useSessionState,
  waitForLogin,
} from './session.ts'

const loginAddress = `/ui${renewedPath}`

/**
 * Asks for a login when the session has ended: in a window of its own, so that the page and its input remain.
 * Refused calls are repeated after it.
 */
export function LoginDialog() {
  const state = useSessionState()
  const [step, setStep] = useState<'asked' | 'opened' | 'blocked'>('asked')
  const renew = useRenewal()
  useEffect(() => {
    setUnauthorizedListener(waitForLogin)
    return () => setUnauthorizedListener(undefined)
  }, [])
  useEffect(() => {
    if (state === 'active') return
    return onPossibleLogin(renew)
  }, [state, renew])
  useEffect(() => {
    if (state === 'ended') setStep('asked')
  }, [state])
  const open = () => {
    const opened = window.open(loginAddress, 'tollgate-login', 'popup,width=560,height=760')
    setStep(opened === null ? 'blocked' : 'opened')
  }
  return (
    <Dialog
      open={state === 'ended'}
      onOpenChange={(isOpen) => isOpen || postponeLogin()}
      title="Your session has ended"
      about="Log in again to continue. This page and your unsaved input stay as they are."
      width="narrow"
      footer={
        <>
          <Button onClick={postponeLogin}>Not now</Button>
          <Button tone="primary" icon={LogIn} onClick={open}>
            {step === 'opened' ? 'Open the window again' : 'Log in'}
          </Button>
        </>
      }
    >
      {step === 'asked' && (
        <p className="text-sm text-ink-soft">
          The login opens in a new window and closes when it is complete.
        </p>
      )}
      {step === 'opened' && <Notice title="Waiting for the login in the other window" />}
      {step === 'blocked' && (
        <Notice tone="warn" title="The browser has blocked the window">
          <a
            href={loginAddress}
            target="_blank"
            rel="noreferrer"
            className="font-medium text-accent underline"
          >
            Log in in a new tab
          </a>
          , then return here.
        </Notice>
      )}
    </Dialog>
  )
}

/** Tests whether the browser has a session again, and continues with it. */
function useRenewal(): () => void {
  const queries = useQueryClient()
  const isRunning = useRef(false)
  const [renew] = useState(() => async () => {
    if (isRunning.current) return
    isRunning.current = true
    try {
      const next = await api<Whoami>('/api/whoami', { waitsForLogin: false })
      const before = queries.getQueryData<Whoami>(['whoami'])
      const isSame = before === undefined || identityOf(before) === identityOf(next)
      queries.setQueryData(['whoami'], next)
      resumeCalls(isSame)
      await queries.invalidateQueries()
      if (isSame) toast('good', 'You are logged in again.')
      else
        toast('bad', `You are logged in as ${next.name ?? 'another user'}. Check your input and save again.`)
    } catch {
      // There is no session yet: the dialog stays.
    } finally {
      isRunning.current = false
    }
  })
  return renew
}

function identityOf({ login, name, claims }: Whoami): string {
  return JSON.stringify([login, claims?.['sub'] ?? name])
}

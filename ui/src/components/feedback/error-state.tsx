import { RotateCw } from 'lucide-react'
import { ApiError } from '../../api/client.ts'
import { Button } from '../action/button.tsx'
import { Notice } from './notice.tsx'

/** A failed load: the cause, the id for the log of the gateway, and a retry. */
export function ErrorState({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const known = error instanceof ApiError ? error : undefined
  return (
    <Notice
      tone="bad"
      title={messageOf(error)}
      action={
        onRetry && (
          <Button size="small" icon={RotateCw} onClick={onRetry}>
            Try again
          </Button>
        )
      }
    >
      {known?.status === 403 &&
        'Your role does not permit this. An administrator of the gateway can change ui.policies.authorization.'}
      {known?.requestId && <span className="font-mono text-xs">Request {known.requestId}</span>}
    </Notice>
  )
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

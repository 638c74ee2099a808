"""Operations that have a faster kernel on some processors."""

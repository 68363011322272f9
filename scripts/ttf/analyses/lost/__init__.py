"""Lost GPU time: What do failures cost?"""
